"""Clear thinking: remove thinking that the provider would reject, or that the model no longer needs.

Models that bind thinking to the preceding prompt (rule A11) reject thinking that follows an edit made later,
so all thinking after the first edit is removed, even in the tail. For other models, thinking in the middle is
removed, but never within the open tool loop (rule A10).
"""

from __future__ import annotations

from collections.abc import Sequence

from compaction.context import Context
from compaction.edits import Edit, Op
from compaction.messages import Message, Role, Thinking
from compaction.strategies.base import FULL, StepResult, Strategy
from compaction.view import Entry, View

NAME = "clear_thinking"


def run(view: View, context: Context) -> StepResult:
    reason = "thinking that the model no longer needs"
    if context.capabilities.bound_thinking:
        reason = "thinking that the provider rejects after an edit of the prompt before it"
    edits = [
        edit
        for entry in _entries(view, context)
        if not entry.is_generated
        for edit in _strip_edits(entry.first, view, reason, context)
    ]
    return StepResult.of(view, edits)


def _entries(view: View, context: Context) -> list[Entry]:
    """Return the entries whose thinking is to be removed."""
    if context.capabilities.bound_thinking:
        first = min((edit.position for edit in view.edits), default=None)
        return [] if first is None else [entry for entry in view.entries if entry.first >= first]
    loop = _open_loop_start(view.messages)
    end = view.entries[loop].first if loop < len(view.entries) else context.end_position
    return [entry for entry in context.middle(view) if entry.first < end]


def _open_loop_start(messages: Sequence[Message]) -> int:
    """Return the index after the latest user input, where the tool loop in progress begins."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role is Role.USER and not message.tool_results:
            return index + 1
    return 0


def _strip_edits(position: int, view: View, reason: str, context: Context) -> list[Edit]:
    edited = view.part_edits.get(position, ())
    return [
        Edit(
            strategy=NAME,
            op=Op.STRIP,
            position=position,
            end=position,
            part=index,
            reason=reason,
            tokens_before=context.size(position, index),
        )
        for index, part in enumerate(context.original(position).parts)
        if isinstance(part, Thinking) and index not in edited
    ]


STRATEGY = Strategy(
    name=NAME,
    meaning="Thinking from earlier turns, removed.",
    description="Removes thinking from the middle, but never within the open tool loop.",
    run=run,
    is_free=True,
    presets=FULL | {"masking"},
)
