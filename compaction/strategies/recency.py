"""Recency: shorten older turns more than newer ones.

In the older half of the middle, smaller outputs collapse too, and long arguments of calls are replaced by
their sizes: content that a call wrote to a file can be read from the file.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import partial

from compaction.context import Context
from compaction.edits import Edit
from compaction.messages import ToolCall
from compaction.strategies.base import StepResult, Strategy
from compaction.view import View

NAME = "recency"


def run(view: View, context: Context) -> StepResult:
    middle = context.middle(view)
    if not middle:
        return StepResult(view=view)
    older = middle[len(middle) // 2].first
    edits = heapq.merge(_outputs(view, context, older), _arguments(view, context, older), key=_place)
    return StepResult.shortened(view, edits, goal=context.goal)


def _place(edit: Edit) -> tuple[int, int]:
    return edit.position, edit.part or 0


def _outputs(view: View, context: Context, older: int) -> Iterator[Edit]:
    minimum = context.settings.recency_collapse_tokens
    for output in context.outputs(view):
        position = output.position
        if position >= older or not output.is_editable or output.rule.never_collapse:
            continue
        if context.size(position, output.part) < minimum:
            continue
        describe = partial(context.describe, output)
        edit = context.replace(NAME, position, output.part, describe, reason="old output")
        if edit:
            yield edit


def _arguments(view: View, context: Context, older: int) -> Iterator[Edit]:
    minimum = context.settings.recency_collapse_tokens
    for entry in context.middle(view):
        if entry.first >= older or entry.is_generated:
            continue
        message = context.original(entry.first)
        if message.tokens < minimum:
            continue
        edited = view.part_edits.get(message.position, ())
        for part, call in enumerate(message.parts):
            if not isinstance(call, ToolCall) or call.server or call.fixed or part in edited:
                continue
            size = context.size(message.position, part)
            if size < minimum:
                continue
            shorten = partial(context.shorten, call, size=size)
            reason = "long arguments of an old call"
            edit = context.replace(NAME, message.position, part, shorten, reason=reason)
            if edit:
                yield edit


STRATEGY = Strategy(
    name=NAME,
    meaning="An old tool output or call, replaced with one line and a handle that restores it.",
    description="In the older half of the middle, also collapses outputs of 200 tokens or more, and long "
    "arguments of calls.",
    run=run,
    is_free=True,
)
