"""Clear thinking: thinking that the provider would refuse after this compaction, or that nobody reads.

Models that bind thinking to the prompt before it (A11) refuse every block that was made before an edit
in front of it: there all thinking behind the first edit goes, the tail's included. Elsewhere thinking of
the middle goes, but never within the tool loop that is still open (A10).
"""

from __future__ import annotations

from collections.abc import Sequence

from compaction.context import Context
from compaction.edits import Edit, Op
from compaction.messages import Message, Role, Thinking
from compaction.view import Entry, View

NAME = "clear_thinking"
MEANING = "Thinking of earlier turns, left out."


def run(view: View, context: Context) -> tuple[View, tuple[Edit, ...]]:
    gone = {(edit.position, edit.part) for edit in view.edits if edit.op is Op.STRIP}
    edits = [edit for entry in _entries(view, context) for edit in _stripped(entry, gone, context)]
    return view.with_edits(edits), tuple(edits)


def _entries(view: View, context: Context) -> list[Entry]:
    if context.capabilities.bound_thinking:
        first = min((edit.position for edit in view.edits), default=None)
        return [] if first is None else [entry for entry in view.entries if entry.first >= first]
    loop = _open_loop_start(view.messages)
    behind = view.entries[loop].first if loop < len(view.entries) else context.end_position
    return [entry for entry in context.middle(view) if entry.first < behind]


def _open_loop_start(messages: Sequence[Message]) -> int:
    """Return the index after the latest user input, where the tool loop in progress begins."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role is Role.USER and not message.tool_results:
            return index + 1
    return 0


def _stripped(entry: Entry, gone: set[tuple[int, int | None]], context: Context) -> list[Edit]:
    if entry.is_made or not any(isinstance(part, Thinking) for part in entry.message.parts):
        return []
    return [
        Edit(
            strategy=NAME,
            op=Op.STRIP,
            position=entry.first,
            end=entry.first,
            part=index,
            reason="thinking from before this compaction",
            tokens_before=context.size(entry.first, index),
        )
        for index, part in enumerate(context.original(entry.first).parts)
        if isinstance(part, Thinking) and (entry.first, index) not in gone
    ]
