"""Last resort: keep system prompt, tools, working memory and the latest user message, and what else fits.

Calls that still have no result stay as well. The rest of the head is kept if it fits, then the newest
messages. If even the parts in the first line do not fit, the memory is removed first and the tools last,
unless a call is kept.
"""

from __future__ import annotations

from itertools import takewhile

from compaction.component_edits import removable_components, shed_edit
from compaction.context import Context
from compaction.edits import Edit
from compaction.eviction import MARKER_TOKENS, Span, evict, newest
from compaction.messages import Role
from compaction.strategies.base import FULL, StepResult, Strategy
from compaction.view import Entry, View

NAME = "last_resort"


def run(view: View, context: Context) -> StepResult:
    if view.tokens <= context.budget_tokens:
        return StepResult(view=view)
    head = [entry for entry in view.entries if entry.last <= context.head_last]
    leading = list(takewhile(lambda entry: entry.message.role is Role.SYSTEM, head))
    result = StepResult(view=view)
    for kept in (head, leading):
        result = StepResult.of(view, _evict_all_but(kept, view, context))
        if result.view.tokens <= context.budget_tokens:
            return result
    for name in removable_components(result.view, context):
        result = StepResult.of(view, (*result.edits, *shed_edit(NAME, name, view, context)))
        if result.view.tokens <= context.budget_tokens:
            break
    return result


def _evict_all_but(kept: list[Entry], view: View, context: Context) -> tuple[Edit, ...]:
    """Evict all messages except these, the protected ones, and the newest others that fit."""
    stays = {entry.first for entry in kept} | context.protected
    fixed = sum(entry.message.tokens for entry in view.entries if entry.first in stays)
    room = -view.components.total - fixed - MARKER_TOKENS
    fitting = newest(view, context, room=context.budget_tokens + room, limit=context.goal + room)
    stays |= {entry.first for entry in fitting}
    entries = [entry for entry in view.entries if entry.first not in stays]
    if not entries:
        return ()
    span = Span.of(entries, view, context)
    return evict(NAME, span, context, text=span.marker, reason="nothing else fits")


STRATEGY = Strategy(
    name=NAME,
    meaning="Only the system prompt, tools, working memory, latest user message and the newest messages "
    "that fit remain.",
    description="Keeps the system prompt, the tools, the working memory, the latest user message, open "
    "calls, and the newest other messages that fit.",
    run=run,
    presets=FULL | {"masking", "baseline"},
)
