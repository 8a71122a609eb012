"""Clip: shorten an output over its cap to its head and tail, with a marker between them.

Outputs that show files, or lines of files, are never clipped, because agents make wrong edits if an
incomplete file looks complete. Errors are not clipped, either.
"""

from __future__ import annotations

from functools import partial

from compaction.context import Context, Output
from compaction.edits import Edit
from compaction.strategies.base import StepResult, Strategy
from compaction.view import View

NAME = "clip"


def run(view: View, context: Context) -> StepResult:
    edits = (_clip_edit(output, context) for output in context.outputs(view))
    return StepResult.shortened(view, edits, goal=context.goal)


def _clip_edit(output: Output, context: Context) -> Edit | None:
    cap = output.rule.clip_tokens or context.settings.clip_tokens
    if not output.is_editable or output.shows_file:
        return None
    if context.size(output.position, output.part) <= cap or output.is_error:
        return None
    reason = f"over {cap} tokens"
    return context.replace(
        NAME, output.position, output.part, partial(context.clip, output.result.text, cap=cap), reason=reason
    )


STRATEGY = Strategy(
    name=NAME,
    meaning="Beginning and end of a long tool output, with a handle that restores the rest.",
    description="Shortens outputs over 1,500 tokens that must not collapse: keeps the beginning (60%) and "
    "the end (40%). Never shortens errors, or outputs that show lines of files; JSON stays valid.",
    run=run,
    is_free=True,
)
