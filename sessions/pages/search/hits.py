"""Search hits as the pages show them: grouped by session, with marked snippets and links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from search.snippets import Snippet
from sessions.models import AgentSession
from sessions.pages.text import visible
from sessions.selectors.lists.filter_expression import term_text
from sessions.selectors.search.results import SearchHit

#: Hits of a session that are shown before "more".
HITS_PER_SESSION = 3
#: Values shown of each facet.
FACET_VALUES = 8
#: Matched texts that a link passes to the transcript, which highlights them.
_HIGHLIGHTED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownHit:
    """A hit. `pieces` are the parts of its snippet, every second one a match."""

    hit: SearchHit
    address: str
    pieces: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHits:
    """The hits of one session, best first. `more` is the number of those that are not shown."""

    session: AgentSession
    hits: Sequence[ShownHit]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetValue:
    """A value by which the hits can be narrowed, and the expression that does it."""

    label: str
    count: int
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """A property of the hits, with its most frequent values."""

    label: str
    values: Sequence[FacetValue]


def hits_by_session(slug: str, hits: Sequence[SearchHit], *, most: int) -> list[SessionHits]:
    """Group hits by session, in the order of the best hit of each."""
    grouped: dict[AgentSession, list[SearchHit]] = {}
    for hit in hits:
        grouped.setdefault(hit.session, []).append(hit)
    return [
        SessionHits(
            session=session,
            hits=[shown_hit(slug, hit) for hit in found[:most]],
            more=max(0, len(found) - most),
        )
        for session, found in grouped.items()
    ]


def shown_hit(slug: str, hit: SearchHit) -> ShownHit:
    return ShownHit(hit=hit, address=hit_address(slug, hit), pieces=snippet_pieces(hit.snippet))


def snippet_pieces(snippet: Snippet) -> list[str]:
    """Split a snippet at its marks: every second piece is a match."""
    text, pieces, at = snippet.text, [], 0
    for start, end in snippet.marks:
        pieces += [text[at:start], text[start:end]]
        at = end
    return [visible(piece) for piece in (*pieces, text[at:])]


def hit_address(slug: str, hit: SearchHit) -> str:
    """Return the address of the message in the transcript, with the matches to highlight."""
    text = hit.snippet.text
    found = dict.fromkeys(text[start:end] for start, end in hit.snippet.marks)
    pairs = [("turn", str(hit.turn)), *(("find", match) for match in list(found)[:_HIGHLIGHTED])]
    path = reverse("session", args=[slug, hit.session.pk])
    return f"{path}?{urlencode(pairs)}#message-{hit.position}"


def facets_of(text: str, hits: Sequence[SearchHit]) -> list[Facet]:
    """Return the facets of the hits. `text` is the current expression."""
    facets = [
        _facet("Agent", "agent", text, hits, lambda hit: hit.session.agent),
        _facet("Model", "model", text, hits, lambda hit: hit.session.model),
        _facet("Role", "role", text, hits, lambda hit: hit.role),
        _facet("Tool", "tool", text, hits, lambda hit: hit.tool),
        _facet("Error", "error", text, hits, lambda hit: "yes" if hit.is_error else ""),
    ]
    return [facet for facet in facets if facet.values]


def _facet(
    label: str, key: str, text: str, hits: Sequence[SearchHit], value_of: Callable[[SearchHit], str]
) -> Facet:
    counts = Counter(value for hit in hits if (value := value_of(hit)))
    if f"{key}:" in text:
        return Facet(label=label, values=())
    values = [
        FacetValue(label=value, count=count, expression=f"{text} {term_text(key, value)}")
        for value, count in counts.most_common(FACET_VALUES)
    ]
    return Facet(label=label, values=values)
