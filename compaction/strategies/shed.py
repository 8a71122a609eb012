"""Shed: remove whole components in the order history, memory, tool definitions.

The cheapest to lose comes first: history and memory can be retrieved, but an agent without its tools cannot
act.
"""

from __future__ import annotations

from compaction.context import Context
from compaction.descriptors import dropped_marker
from compaction.edits import Edit, Op
from compaction.eviction import Span, evict
from compaction.strategies.base import FULL, StepResult, Strategy
from compaction.view import MEMORY, TOOLS, View

NAME = "shed"


def run(view: View, context: Context) -> StepResult:
    edits: tuple[Edit, ...] = ()
    for shed in (_history, _memory, _tools):
        if view.tokens <= context.ceiling:
            break
        more = shed(view, context)
        edits += more
        view = view.with_edits(more)
    return StepResult(view=view, edits=edits)


def _history(view: View, context: Context) -> tuple[Edit, ...]:
    """Evict all of the middle, including the recap."""
    entries = context.middle(view)
    if not entries or (len(entries) == 1 and entries[0].is_generated):
        return ()
    span = Span.of(entries, view, context)
    marker = dropped_marker(span.count, span.first, span.last)
    return evict(NAME, span, context, text=marker, reason="the whole middle: nothing smaller fits")


def _memory(view: View, context: Context) -> tuple[Edit, ...]:
    return _component(MEMORY, view.components.memory, context)


def _tools(view: View, context: Context) -> tuple[Edit, ...]:
    return _component(TOOLS, view.components.tools, context)


def _component(name: str, tokens: int, context: Context) -> tuple[Edit, ...]:
    if not tokens:
        return ()
    at = context.end_position
    reason = f"{name} leave no room for the messages"
    return (
        Edit(strategy=NAME, op=Op.SHED, position=at, end=at, text=name, reason=reason, tokens_before=tokens),
    )


STRATEGY = Strategy(
    name=NAME,
    meaning="A whole component, removed.",
    description="Removes whole components in the order history, memory, tool definitions.",
    run=run,
    presets=FULL | {"masking", "baseline"},
)
