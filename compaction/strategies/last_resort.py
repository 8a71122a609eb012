"""Last resort: the system prompt and the latest user message, nothing else.

First the head stays too; it goes only where that does not fit either.
"""

from __future__ import annotations

from compaction.context import Context
from compaction.descriptors import dropped_marker
from compaction.edits import Edit
from compaction.eviction import Span, evict
from compaction.messages import Role
from compaction.view import Entry, View

NAME = "last_resort"
MEANING = "Only the system text and the latest user message are left."


def run(view: View, context: Context) -> tuple[View, tuple[Edit, ...]]:
    if view.tokens <= context.budget:
        return view, ()
    head = [entry for entry in view.entries if entry.last <= context.head_last]
    edits: tuple[Edit, ...] = ()
    for kept in (head, [entry for entry in head if entry.message.role is Role.SYSTEM]):
        made = _all_but(kept, view, context)
        if made:
            edits, shown = (*edits, *made), view.with_edits((*edits, *made))
            if shown.tokens <= context.budget:
                return shown, edits
    return view.with_edits(edits), edits


def _all_but(kept: list[Entry], view: View, context: Context) -> tuple[Edit, ...]:
    """Evicts every message but these, the latest user message and the pinned ones."""
    latest = next((e for e in reversed(view.entries) if _is_request(e)), None)
    stays = {entry.first for entry in kept} | ({latest.first} if latest else set()) | context.pinned
    entries = [entry for entry in view.entries if entry.first not in stays]
    if not entries:
        return ()
    span = Span.of(entries, view, context)
    marker = dropped_marker(span.count, span.first, span.last)
    return evict(NAME, span, context, text=marker, reason="nothing else fits")


def _is_request(entry: Entry) -> bool:
    message = entry.message
    return message.role is Role.USER and not message.tool_results and not entry.is_made
