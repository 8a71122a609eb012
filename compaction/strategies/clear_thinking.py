"""Clear thinking: remove thinking that the provider would reject, or that the model no longer needs.

Models that bind thinking to the preceding prompt (rule A11) reject thinking that follows an edit made later,
so all thinking after the first edit is removed, even in the tail. For other models, thinking in the middle is
removed, but never within the open tool loop (rule A10).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compaction.context import Context
from compaction.edits import Edit, Op
from compaction.messages import Message, Role, Thinking
from compaction.strategies.base import FULL, StepResult, Strategy
from compaction.view import Entry, View

NAME = "clear_thinking"


def run(view: View, context: Context) -> StepResult:
    if context.capabilities.bound_thinking:
        return StepResult.of(view, edits_from(first_change(view.edits), view, context))
    reason = "thinking that the model no longer needs"
    return StepResult.of(view, _strip(_unneeded(view, context), view, reason, context))


def first_change(edits: Iterable[Edit]) -> int | None:
    """Return the first position at which edits change the prompt, or None if there are none.

    Tool definitions precede all messages.
    """
    return min((0 if edit.op in (Op.SHED, Op.RESTORE) else edit.position for edit in edits), default=None)


def edits_from(position: int | None, view: View, context: Context) -> tuple[Edit, ...]:
    """Return edits that remove all thinking from `position` on, where a prompt has changed. None: nowhere."""
    if position is None:
        return ()
    entries = [entry for entry in view.entries if entry.first >= position]
    return _strip(
        entries, view, "thinking that the provider rejects after an edit of the prompt before it", context
    )


def _unneeded(view: View, context: Context) -> list[Entry]:
    """Return the entries of the middle before the open tool loop."""
    loop = _open_loop_start(view.messages)
    end = view.entries[loop].first if loop < len(view.entries) else context.start.end_position
    return [entry for entry in context.middle(view) if entry.first < end]


def _open_loop_start(messages: Sequence[Message]) -> int:
    """Return the index after the latest user input, where the tool loop in progress begins."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role is Role.USER and not message.tool_results:
            return index + 1
    return 0


def _strip(entries: Iterable[Entry], view: View, reason: str, context: Context) -> tuple[Edit, ...]:
    """Return edits that remove the thinking of these entries."""
    return tuple(
        Edit(
            strategy=NAME,
            op=Op.STRIP,
            position=entry.first,
            end=entry.first,
            part=index,
            reason=reason,
            tokens_before=context.size(entry.first, index),
        )
        for entry in entries
        if not entry.is_generated
        for index, part in enumerate(context.original(entry.first).parts)
        if isinstance(part, Thinking) and index not in view.part_edits.get(entry.first, ())
    )


STRATEGY = Strategy(
    name=NAME,
    meaning="Thinking from earlier turns, removed.",
    description="Removes thinking from the middle, but never within the open tool loop. If the model binds "
    "thinking to the preceding prompt, every compaction removes all thinking after its first edit, whether "
    "or not the policy has this step.",
    run=run,
    is_free=True,
    presets=FULL | {"masking"},
)
