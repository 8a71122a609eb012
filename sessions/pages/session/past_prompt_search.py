"""Search a transcript up to a turn and report for each hit whether it was still in the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from compaction.view import VERBATIM, Entry
from sessions.models import AgentSession
from sessions.pages.search.hits import snippet_pieces
from sessions.selectors.compactions.message_changes import MessageChange, message_changes
from sessions.selectors.past_prompts.outline import Outline
from sessions.selectors.search.request import search_expression
from sessions.selectors.search.results import SearchHit, search

#: Maximum number of hits.
HITS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class PastHit:
    """A hit, and what the prompt showed of it.

    `fate` is "shown", the rule that changed it, or "removed". `changes` led to it, oldest first.
    """

    hit: SearchHit
    fate: str
    changes: Sequence[MessageChange] = ()

    @property
    def pieces(self) -> Sequence[str]:
        """The parts of the snippet, every second one a match."""
        return snippet_pieces(self.hit.snippet)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastHits:
    """The best hits, and matching replacements (recaps, markers).

    `has_more` is set if further messages match; `problems` describe invalid terms of the query.
    """

    hits: Sequence[PastHit]
    replacements: Sequence[Entry]
    has_more: bool = False
    problems: Sequence[str] = ()


def past_prompt_search(session: AgentSession, outline: Outline, query: str, zone: tzinfo) -> PastHits:
    """Search the messages before the end of the prompt. Days in the query are those of the time zone."""
    expression = search_expression(query, zone=zone)
    request = expression.request(session.project_id, session_id=session.pk, before=outline.end)
    if request.is_empty:
        return PastHits(hits=[], replacements=[], problems=expression.problems)
    page = search(request, limit=HITS)
    entries = {hit.position: outline.entry_at(hit.position) for hit in page.hits}
    removed = [position for position, entry in entries.items() if entry is None or entry.is_generated]
    removals = message_changes([(session.pk, position) for position in removed], turn=outline.after)
    return PastHits(
        hits=[
            _hit(outline, hit, entries[hit.position], removals.get((session.pk, hit.position), ()))
            for hit in page.hits
        ],
        replacements=_replacements(outline, query),
        has_more=page.has_more,
        problems=expression.problems,
    )


def _replacements(outline: Outline, query: str) -> list[Entry]:
    """Return the replacements that contain all words of the query."""
    words = query.casefold().split()
    return [
        entry
        for entry in outline.entries
        if entry.is_generated and all(word in entry.message.text.casefold() for word in words)
    ]


def _hit(outline: Outline, hit: SearchHit, entry: Entry | None, removals: Sequence[MessageChange]) -> PastHit:
    if entry is None or entry.is_generated:
        return PastHit(hit=hit, fate="removed", changes=removals)
    if entry.rule == VERBATIM:
        return PastHit(hit=hit, fate="shown")
    return PastHit(hit=hit, fate=entry.rule, changes=outline.changes_of(entry))
