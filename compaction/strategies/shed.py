"""Shed: whole components go in the order history, memory, tool definitions, cheapest to lose first.

History can be read again, memory can be fetched again, but an agent without its tools cannot act.
"""

from __future__ import annotations

from compaction.context import Context
from compaction.descriptors import dropped_marker
from compaction.edits import Edit, Op
from compaction.eviction import Span, evict
from compaction.view import MEMORY, TOOLS, View

NAME = "shed"
MEANING = "A whole component, left out."


def run(view: View, context: Context) -> tuple[View, tuple[Edit, ...]]:
    edits: tuple[Edit, ...] = ()
    for step in (_history, _memory, _tools):
        if view.tokens <= context.ceiling:
            break
        made = step(view, context)
        edits += made
        view = view.with_edits(made)
    return view, edits


def _history(view: View, context: Context) -> tuple[Edit, ...]:
    """All of the middle, the recap included."""
    entries = context.middle(view)
    if not entries or (len(entries) == 1 and entries[0].is_made):
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
