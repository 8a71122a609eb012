"""Drop oldest: evict the oldest groups of the middle and mark the gap with one line.

A recap at the beginning of the gap is kept above the marker. If the prompt does not fit without the middle,
the oldest groups of the tail follow, so that the recap and the newest messages stay.
"""

from __future__ import annotations

from compaction.context import Context
from compaction.descriptors import without_markers
from compaction.eviction import MARKER_TOKENS, Span, evict, oldest, oldest_of_tail, recap_entry
from compaction.strategies.base import FULL, StepResult, Strategy
from compaction.view import Entry, View

NAME = "drop_oldest"


def run(view: View, context: Context) -> StepResult:
    recap = recap_entry(view, context)
    room = MARKER_TOKENS + (recap.message.tokens if recap else 0)
    of_tail = _of_tail(view, context, room)
    span = (
        Span.of((*context.middle(view), *of_tail), view, context)
        if of_tail
        else oldest(view, context, room=room)
    )
    if not span.messages:
        return StepResult(view=view)
    shown = without_markers(recap.message.text) if recap else ""
    text = f"{shown}\n\n{span.marker}" if shown else span.marker
    reason = span.label if of_tail else f"{span.label} in the middle"
    return StepResult.of(view, evict(NAME, span, context, text=text, reason=reason))


def _of_tail(view: View, context: Context, room: int) -> list[Entry]:
    """Return the messages of the tail to evict if the prompt does not fit without the middle."""
    middle = sum(entry.message.tokens for entry in context.middle(view))
    left = view.tokens - middle
    return oldest_of_tail(view, context, size=left + room) if left > context.budget_tokens else []


STRATEGY = Strategy(
    name=NAME,
    meaning="The oldest messages, removed; one line marks the gap.",
    description="Evicts the oldest groups and marks the gap with one line. If the prompt does not fit "
    "without the middle, evicts the oldest groups of the tail as well, but never the newest.",
    run=run,
    presets=FULL | {"masking", "baseline"},
)
