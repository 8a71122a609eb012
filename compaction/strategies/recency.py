"""Recency: the older the turn, the stronger the step.

The newer half of the middle keeps what the steps before left. In the older half, outputs collapse that
were too small for that before, and the long arguments of calls are cut down to their shape: what a call
wrote to a file stands in the file.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from compaction.context import Context
from compaction.descriptors import short_arguments
from compaction.edits import Edit, Op
from compaction.messages import ToolCall
from compaction.view import View

NAME = "recency"
MEANING = "An old tool output as one line, with a handle that brings it back."


def run(view: View, context: Context) -> tuple[View, tuple[Edit, ...]]:
    middle = context.middle(view)
    if not middle:
        return view, ()
    older = middle[len(middle) // 2].first
    edits = heapq.merge(_outputs(view, context, older), _arguments(view, context, older), key=_place)
    return context.shortened(view, edits)


def _place(edit: Edit) -> tuple[int, int]:
    return edit.position, edit.part or 0


def _outputs(view: View, context: Context, older: int) -> Iterator[Edit]:
    least = context.policy.recency_collapse_tokens
    for output in context.outputs(view):
        position = output.position
        if position >= older or not context.in_middle(position) or output.is_error:
            continue
        if output.rule.exempt or output.rule.never_collapse or context.size(position, output.part) < least:
            continue
        handle = context.make_handle(position, output.part)
        text = context.describe(output, handle)
        edit = context.replace(NAME, position, output.part, text, handle=handle, reason="old output")
        if edit:
            yield edit


def _arguments(view: View, context: Context, older: int) -> Iterator[Edit]:
    least = context.policy.recency_collapse_tokens
    edited = {(edit.position, edit.part) for edit in view.edits if edit.op is Op.REPLACE}
    for entry in context.middle(view):
        if entry.first >= older or entry.is_made:
            continue
        message = context.original(entry.first)
        for part, call in enumerate(message.parts):
            if not isinstance(call, ToolCall) or call.server or (message.position, part) in edited:
                continue
            if message.tokens < least or context.size(message.position, part) < least:
                continue
            handle = context.make_handle(message.position, part)
            text = short_arguments(call.arguments, handle)
            reason = "long arguments of an old call"
            edit = context.replace(NAME, message.position, part, text, handle=handle, reason=reason)
            if edit:
                yield edit
