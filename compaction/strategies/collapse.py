"""Collapse: a large tool output becomes one factual line. All of it or nothing, errors stay whole.

Oldest first, and no further than the target asks.
"""

from __future__ import annotations

from compaction.context import Context, Output
from compaction.edits import Edit
from compaction.view import View

NAME = "collapse"
MEANING = "A large tool output as one line, with a handle that brings it back."


def run(view: View, context: Context) -> tuple[View, tuple[Edit, ...]]:
    edits = (_collapsed(output, context) for output in context.outputs(view))
    return context.shortened(view, edits)


def _collapsed(output: Output, context: Context) -> Edit | None:
    if output.rule.exempt or output.rule.never_collapse or not context.in_middle(output.position):
        return None
    if context.original(output.position).tokens < context.policy.collapse_tokens:
        return None
    if context.size(output.position, output.part) < context.policy.collapse_tokens or output.is_error:
        return None
    handle = context.make_handle(output.position, output.part)
    text = context.describe(output, handle)
    return context.replace(
        NAME, output.position, output.part, text, handle=handle, reason="large output of the middle"
    )
