"""Shed: remove whole components while the prompt exceeds the budget, in the order history, memory, tools.

The least important components are removed first: history and memory can be retrieved, but an agent cannot act
without its tools. A transcript that uses tools keeps them; only the last resort may remove them.
"""

from __future__ import annotations

from compaction.component_edits import removable_components, shed_edit
from compaction.context import Context
from compaction.edits import Edit
from compaction.eviction import Span, evict
from compaction.strategies.base import FULL, StepResult, Strategy
from compaction.view import View

NAME = "shed"


def run(view: View, context: Context) -> StepResult:
    if view.tokens <= context.budget_tokens:
        return StepResult(view=view)
    history = result = StepResult.of(view, _history(view, context))
    for name in removable_components(context.start, context):
        if result.view.tokens <= context.budget_tokens:
            break
        result = StepResult.of(view, (*result.edits, *shed_edit(NAME, name, view, context)))
    # If that is not enough, memory and tools are left to the last resort.
    return result if result.view.tokens <= context.budget_tokens else history


def _history(view: View, context: Context) -> tuple[Edit, ...]:
    """Evict all of the middle, including the recap."""
    entries = context.middle(view)
    if not entries:
        return ()
    span = Span.of(entries, view, context)
    edits = evict(NAME, span, context, text=span.marker, reason="the whole middle: nothing smaller fits")
    return edits if sum(edit.tokens_before - edit.tokens_after for edit in edits) > 0 else ()


STRATEGY = Strategy(
    name=NAME,
    meaning="A whole component, removed.",
    description="While the prompt exceeds the budget, removes whole components in the order history, memory, "
    "tool definitions. A transcript that uses tools keeps them. Tool definitions return as soon as they fit.",
    run=run,
    presets=FULL | {"masking", "baseline"},
)
