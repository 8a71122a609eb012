"""Select the oldest tool groups of the middle and create the edits that evict them.

Shared by the strategies that replace messages with a recap and those that leave a marker.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from compaction.context import Context
from compaction.descriptors import dropped_marker
from compaction.edits import Edit, Op
from compaction.messages import Message, ToolCall
from compaction.recap.handles import Handled
from compaction.shortening import shortened
from compaction.sizes.tokens import MESSAGE_OVERHEAD
from compaction.tools.actions import action_of
from compaction.view import Entry, View

#: Maximum number of characters of a command that identifies its output in a recap.
_MAX_COMMAND = 60

#: Tokens of the line that marks evicted messages.
MARKER_TOKENS = 40

#: Minimum share of the prompt that a step must save to evict messages from a prompt that fits.
GAIN_SHARE = 0.05


@dataclass(frozen=True)
class Span:
    """Entries to evict, oldest first, in runs without a shown message between them."""

    runs: tuple[tuple[Entry, ...], ...]
    messages: tuple[Message, ...]  #: as pushed, without the replacements of earlier evictions

    @classmethod
    def of(cls, entries: Sequence[Entry], view: View, context: Context) -> Span:
        """Return the span of these entries of the view."""
        positions = {entry.first for entry in entries}
        runs: list[list[Entry]] = []
        adjacent = False
        for entry in view.entries:
            taken = entry.first in positions
            if taken and adjacent:
                runs[-1].append(entry)
            elif taken:
                runs.append([entry])
            adjacent = taken
        messages = (context.original(entry.first) for run in runs for entry in run if not entry.is_generated)
        return cls(runs=tuple(map(tuple, runs)), messages=tuple(messages))

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(entry for run in self.runs for entry in run)

    @cached_property
    def positions(self) -> frozenset[int]:
        """The first position of each entry."""
        return frozenset(entry.first for entry in self.entries)

    @property
    def first(self) -> int:
        return self.entries[0].first

    @property
    def last(self) -> int:
        return self.entries[-1].last

    @property
    def label(self) -> str:
        """The messages in the reason of an edit."""
        number = len(self.messages)
        return "oldest message" if number == 1 else f"{number:,} oldest messages"

    @property
    def count(self) -> int:
        """The number of pushed messages that it covers, including those of earlier evictions."""
        return sum(entry.last - entry.first + 1 for entry in self.entries)

    @property
    def marker(self) -> str:
        """The line that marks the gap in the prompt."""
        return dropped_marker(self.count, self.first, self.last)


def oldest(view: View, context: Context, *, room: int) -> Span:
    """Return the oldest groups whose eviction reduces the view to the goal, with `room` for their
    replacement.

    Returns all of the middle if that is not enough.
    """
    freed = context.goal - view.tokens - room
    taken: list[Entry] = []
    for group in _groups(view, context):
        if freed >= 0:
            break
        taken += group
        freed += sum(entry.message.tokens for entry in group)
    return Span.of(taken, view, context)


def oldest_of_tail(view: View, context: Context, *, size: int) -> list[Entry]:
    """Return the oldest groups of the tail whose eviction reduces a prompt of `size` tokens to the goal.

    The newest group is never evicted. Returns none if the prompt would still exceed the budget.
    """
    taken: list[Entry] = []
    groups = [group for group in _all_groups(view) if group[0].first >= context.tail_first]
    for group in groups[:-1]:
        if size <= context.goal:
            break
        unprotected = [entry for entry in group if entry.first not in context.protected]
        taken += unprotected
        size -= sum(entry.message.tokens for entry in unprotected)
    return taken if size <= context.budget_tokens else []


def newest(view: View, context: Context, *, room: int, limit: int) -> list[Entry]:
    """Return the messages of the newest groups that fit, apart from the protected ones.

    The newest group may take `room` tokens; together with earlier ones, it may take at most `limit`.
    """
    kept: list[Entry] = []
    for group in reversed(_all_groups(view)):
        if group[0].is_generated or group[0].last <= context.head_last:
            break
        unprotected = [entry for entry in group if entry.first not in context.protected]
        size = sum(entry.message.tokens for entry in unprotected)
        if size > (limit if kept else room):
            break
        room, limit = room - size, limit - size
        kept += unprotected
    return kept


def is_worthwhile(view: View, context: Context, *, gain: int, kept: Collection[int]) -> bool:
    """Whether a step that evicts messages and saves `gain` tokens saves enough.

    `kept` are the positions of the messages that remain. If the view exceeds the budget, any gain is enough.
    """
    if view.tokens > context.budget_tokens:
        return True
    descriptors = sum(e.tokens_after for e in view.edits if e.handle and e.position not in kept)
    return gain >= max(descriptors, GAIN_SHARE * min(context.budget_tokens, context.start.tokens))


def _all_groups(view: View) -> list[list[Entry]]:
    """Split a view into groups that must be kept or evicted together, oldest first."""
    starts = [0, *sorted(view.cuts - {0}), len(view.entries)]
    return [list(view.entries[start:end]) for start, end in pairwise(starts) if start < end]


def _groups(view: View, context: Context) -> list[list[Entry]]:
    """Split the middle into groups that must be kept or evicted together, oldest first."""
    groups: list[list[Entry]] = []
    for index, entry in enumerate(view.entries):
        if not context.in_middle(entry.first):
            continue
        if index in view.cuts or not groups:
            groups.append([])
        groups[-1].append(entry)
    return groups


#: The strategies whose evictions may show a recap: the one that writes it, and the one that drops more
#: messages after it but keeps its text.
SHOWS_RECAP = ("recap", "drop_oldest")


def recap_entry(view: View, context: Context) -> Entry | None:
    """Return the entry that may show a recap, if there is one."""
    replacements = [entry for entry in context.middle(view) if entry.is_generated]
    return next((entry for rule in SHOWS_RECAP for entry in replacements if entry.rule == rule), None)


def evict(
    strategy: str, span: Span, context: Context, *, text: str, reason: str, tokens: int | None = None
) -> tuple[Edit, ...]:
    """Return the edits that evict a span: `text` replaces its first run, the other runs are removed.

    `tokens` is the size of the text, if known.
    """
    edits: list[Edit] = []
    counted = MESSAGE_OVERHEAD + (context.counter.count(text) if tokens is None else tokens)
    for run in span.runs:
        shown = text if not edits else ""
        edits.append(
            Edit(
                strategy=strategy,
                op=Op.EVICT,
                position=run[0].first,
                end=run[-1].last,
                text=shown,
                reason=reason,
                tokens_before=sum(entry.message.tokens for entry in run),
                tokens_after=counted if shown else 0,
            )
        )
    return tuple(edits)


def evicted_handles(span: Span, view: View, context: Context) -> tuple[Handled, ...]:
    """Return the handles in the descriptors of the span, in chronological order."""
    return tuple(
        Handled(
            handle=edit.handle,
            subject=_subject(context.call_at(edit.position, edit.part)),
            position=edit.position,
        )
        for edit in sorted(view.edits, key=lambda edit: edit.position)
        if edit.op is Op.REPLACE and edit.handle and edit.position in span.positions
    )


def _subject(call: ToolCall | None) -> str:
    """Return the file or command of a call, or else its name and short arguments, in one line."""
    if call is None:
        return "messages"
    action = action_of(call)
    if action.path:
        return action.path
    command = " ".join(action.command.split()) or action.label
    return f"`{shortened(command, _MAX_COMMAND)}`" if command else call.name
