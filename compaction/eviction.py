"""Evicting the oldest of the middle: which whole tool groups, and the edits for it.

Both ways of evicting, with a recap and with a marker, choose and cut alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from compaction.context import Context
from compaction.edits import Edit, Op
from compaction.messages import Message
from compaction.tokens import MESSAGE_OVERHEAD
from compaction.view import Entry, View


@dataclass(frozen=True)
class Span:
    """Entries to evict, oldest first, in runs without a shown message between them."""

    runs: tuple[tuple[Entry, ...], ...]
    messages: tuple[Message, ...]  #: as they were pushed, without what stands for others

    @classmethod
    def of(cls, entries: Sequence[Entry], view: View, context: Context) -> Span:
        wanted = {entry.first for entry in entries}
        runs: list[list[Entry]] = []
        adjacent = False
        for entry in view.entries:
            taken = entry.first in wanted
            if taken and adjacent:
                runs[-1].append(entry)
            elif taken:
                runs.append([entry])
            adjacent = taken
        messages = (context.original(entry.first) for run in runs for entry in run if not entry.is_made)
        return cls(runs=tuple(map(tuple, runs)), messages=tuple(messages))

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(entry for run in self.runs for entry in run)

    @cached_property
    def positions(self) -> frozenset[int]:
        """Where its entries begin."""
        return frozenset(entry.first for entry in self.entries)

    @property
    def first(self) -> int:
        return self.entries[0].first

    @property
    def last(self) -> int:
        return self.entries[-1].last

    @property
    def count(self) -> int:
        """How many pushed messages it stands for, those of earlier evictions included."""
        return sum(entry.last - entry.first + 1 for entry in self.entries)


def oldest(view: View, context: Context, *, room: int) -> Span | None:
    """The oldest groups whose eviction brings the view to the goal, with `room` for what stands for them.

    All of the middle where that is not enough; None where the goal is met, or nothing new could go.
    """
    freed = context.goal - view.tokens - room
    if view.tokens <= context.goal:
        return None
    taken: list[Entry] = []
    for group in _groups(view, context):
        if freed >= 0:
            break
        taken += group
        freed += sum(entry.message.tokens for entry in group)
    if all(entry.is_made for entry in taken):
        return None
    return Span.of(taken, view, context)


def _groups(view: View, context: Context) -> list[list[Entry]]:
    """The middle in pieces that live and die together, oldest first."""
    groups: list[list[Entry]] = []
    for index, entry in enumerate(view.entries):
        if not context.in_middle(entry.first):
            continue
        if index in view.cuts or not groups:
            groups.append([])
        groups[-1].append(entry)
    return groups


def standing_recap(view: View, context: Context) -> Entry | None:
    """The recap that the view shows, where there is one."""
    return next((e for e in context.middle(view) if e.is_made and e.rule == "recap"), None)


def evict(strategy: str, span: Span, context: Context, *, text: str, reason: str) -> tuple[Edit, ...]:
    """The edits that evict a span: `text` stands where its first run was, the other runs leave nothing."""
    edits: list[Edit] = []
    for run in span.runs:
        shown = text if not edits else ""
        after = MESSAGE_OVERHEAD + context.counter.count(shown) if shown else 0
        edits.append(
            Edit(
                strategy=strategy,
                op=Op.EVICT,
                position=run[0].first,
                end=run[-1].last,
                text=shown,
                reason=reason,
                tokens_before=sum(entry.message.tokens for entry in run),
                tokens_after=after,
            )
        )
    return tuple(edits)
