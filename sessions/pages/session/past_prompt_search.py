"""Search a transcript up to a turn and report for each hit whether it was still in the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.view import VERBATIM, Entry
from sessions.models import AgentSession
from sessions.pages.text import visible
from sessions.selectors.contents import SearchMatch, search
from sessions.selectors.past_prompts import Eviction, Outline, eviction_covering, evictions_at

#: Maximum number of hits.
HITS = 30
#: Maximum number of messages to search, newest first; the search API has no such limit.
SCANNED = 1_500


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message that contains all words of the query.

    `fate` is "shown", the rule that changed it, or "removed". `evicted_by` is the eviction that removed it,
    or None if the client did: its compactions are not recorded as evictions.
    """

    hit: SearchMatch
    fate: str
    evicted_by: Eviction | None = None

    @property
    def snippet(self) -> str:
        return visible(self.hit.snippet)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHits:
    """The newest hits, and matching replacements (recaps, markers).

    `is_cut` is set if older messages were not searched.
    """

    hits: Sequence[SearchHit]
    replacements: Sequence[Entry]
    is_cut: bool


def transcript_search(session: AgentSession, outline: Outline, query: str) -> SearchHits:
    terms = query.split()
    hits, more = search(session=session, terms=terms, before=outline.end, limit=HITS, scan=SCANNED)
    folded = [term.casefold() for term in terms]
    replacements = [
        entry
        for entry in outline.entries
        if entry.is_generated and all(term in entry.message.text.casefold() for term in folded)
    ]
    evictions = evictions_at(session=session, index=outline.index) if session.compaction_count else []
    return SearchHits(
        hits=[_hit(outline, evictions, hit) for hit in hits],
        replacements=replacements,
        is_cut=more is not None,
    )


def _hit(outline: Outline, evictions: Sequence[Eviction], hit: SearchMatch) -> SearchHit:
    entry = outline.entry_at(hit.position)
    if entry is None or entry.is_generated:
        return SearchHit(hit=hit, fate="removed", evicted_by=eviction_covering(evictions, hit.position))
    return SearchHit(hit=hit, fate="shown" if entry.rule == VERBATIM else entry.rule)
