"""Collapse: replace a large tool output with one factual line, all or nothing. A failure stays verbatim.

Oldest outputs first, and only as many as the goal requires.
"""

from __future__ import annotations

from functools import partial

from compaction.context import Context, Output
from compaction.edits import Edit
from compaction.strategies.base import FULL, StepResult, Strategy
from compaction.view import View

NAME = "collapse"


def run(view: View, context: Context) -> StepResult:
    edits = (_collapse_edit(output, context) for output in context.outputs(view))
    return StepResult.shortened(view, edits, goal=context.goal)


def _collapse_edit(output: Output, context: Context) -> Edit | None:
    minimum = context.settings.collapse_tokens
    if not output.is_editable or output.rule.never_collapse:
        return None
    if context.original(output.position).tokens < minimum:
        return None
    if context.size(output.position, output.part) < minimum:
        return None
    describe = partial(context.describe, output)
    return context.replace(NAME, output.position, output.part, describe, reason="large output in the middle")


STRATEGY = Strategy(
    name=NAME,
    meaning="A large tool output, replaced with one line and a handle that restores it.",
    description="Replaces outputs of 800 tokens or more with one line: source, size, JSON keys or table "
    "columns, exit code, the identifiers mentioned most, a handle. Lines that report a failure stay.",
    run=run,
    is_free=True,
    presets=FULL | {"masking"},
)
