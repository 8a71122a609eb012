"""Which compaction took a message out of the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.edits import Op
from sessions.models import AgentSession, Edit
from sessions.selectors.edits import edits_in_force_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Messages `first`..`last`, which a compaction behind `turn` took out of the prompt."""

    compaction: int
    turn: int
    first: int
    last: int


def evictions_at(*, session: AgentSession, index: int) -> list[Eviction]:
    """The evictions that stood when turn `index` was called, the oldest first: the first that covers a
    message is the one that took it."""
    rows = Edit.objects.filter(edits_in_force_after(index - 1), session=session, op=Op.EVICT)
    columns = ("compaction__number", "compaction__turn_index", "position", "end")
    return [
        Eviction(compaction=number, turn=turn, first=first, last=last)
        for number, turn, first, last in rows.order_by("compaction__number", "ordinal").values_list(*columns)
    ]


def eviction_covering(evictions: Sequence[Eviction], position: int) -> Eviction | None:
    return next((made for made in evictions if made.first <= position <= made.last), None)
