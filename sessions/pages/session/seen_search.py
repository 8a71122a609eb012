"""Searching a transcript as of a turn, saying of each hit whether the model still saw it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.view import VERBATIM, Entry
from sessions.models import AgentSession
from sessions.pages.text import visible
from sessions.selectors.contents import Hit, search
from sessions.selectors.past_prompts import Eviction, Outline, eviction_covering, evictions_at

#: Hits of one search.
HITS = 30
#: Messages that one search reads, newest first; the API's goes through all of them.
SCANNED = 1_500


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenHit:
    """A message with all the words. `fate` says what the prompt had of it: "shown", a rule, or "gone", then
    with what took it. The recording client's own compaction leaves no such trace."""

    hit: Hit
    fate: str
    gone_by: Eviction | None = None

    @property
    def snippet(self) -> str:
        return visible(self.hit.snippet)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenHits:
    """The newest hits, and the lines of ours (recaps, markers) that have the words. `is_cut`: there are
    more messages that were not looked at."""

    hits: Sequence[SeenHit]
    made: Sequence[Entry]
    is_cut: bool


def seen_search(session: AgentSession, outline: Outline, asked: str) -> SeenHits:
    terms = asked.split()
    hits, more = search(session=session, terms=terms, before=outline.end, limit=HITS, scan=SCANNED)
    folded = [term.casefold() for term in terms]
    made = [
        entry
        for entry in outline.entries
        if entry.is_generated and all(term in entry.message.text.casefold() for term in folded)
    ]
    evictions = evictions_at(session=session, index=outline.index) if session.compaction_count else []
    return SeenHits(hits=[_hit(outline, evictions, hit) for hit in hits], made=made, is_cut=more is not None)


def _hit(outline: Outline, evictions: Sequence[Eviction], hit: Hit) -> SeenHit:
    entry = outline.entry_at(hit.position)
    if entry is None or entry.is_generated:
        return SeenHit(hit=hit, fate="gone", gone_by=eviction_covering(evictions, hit.position))
    return SeenHit(hit=hit, fate="shown" if entry.rule == VERBATIM else entry.rule)
