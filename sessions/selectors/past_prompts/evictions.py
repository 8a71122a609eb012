"""Find the compaction that removed a message from the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.edits import Op
from sessions.models import AgentSession, Edit
from sessions.selectors.edits import edits_in_force_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Messages `first` to `last`, which a compaction after `turn` removed from the prompt."""

    compaction: int
    turn: int
    first: int
    last: int


def evictions_at(*, session: AgentSession, index: int) -> list[Eviction]:
    """Return the evictions in force at turn `index`, oldest first.

    The first one that covers a message is the one that removed it.
    """
    rows = Edit.objects.filter(edits_in_force_after(index - 1), session=session, op=Op.EVICT)
    columns = ("compaction__number", "compaction__turn_index", "position", "end")
    return [
        Eviction(compaction=number, turn=turn, first=first, last=last)
        for number, turn, first, last in rows.order_by("compaction__number", "ordinal").values_list(*columns)
    ]


def eviction_covering(evictions: Sequence[Eviction], position: int) -> Eviction | None:
    """Return the eviction that removed the message at a position, or None."""
    return next((each for each in evictions if each.first <= position <= each.last), None)
