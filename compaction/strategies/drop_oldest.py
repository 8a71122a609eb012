"""Drop oldest: evict the oldest groups of the middle and mark the gap with one line.

A recap at the beginning of the gap is kept above the marker.
"""

from __future__ import annotations

from compaction.context import Context
from compaction.descriptors import dropped_marker
from compaction.eviction import evict, oldest, recap_entry
from compaction.strategies.base import FULL, StepResult, Strategy
from compaction.view import View

NAME = "drop_oldest"

#: Tokens that the marker takes.
_MARKER = 40


def run(view: View, context: Context) -> StepResult:
    recap = recap_entry(view, context)
    span = oldest(view, context, room=_MARKER + (recap.message.tokens if recap else 0))
    if span is None or not span.messages:
        return StepResult(view=view)
    marker = dropped_marker(span.count, span.first, span.last)
    text = f"{recap.message.text}\n\n{marker}" if recap else marker
    reason = f"{len(span.messages)} oldest messages of the middle"
    return StepResult.of(view, evict(NAME, span, context, text=text, reason=reason))


STRATEGY = Strategy(
    name=NAME,
    meaning="The oldest messages, removed; one line marks the gap.",
    description="Evicts the oldest groups and marks the gap with one line.",
    run=run,
    presets=FULL | {"masking", "baseline"},
)
