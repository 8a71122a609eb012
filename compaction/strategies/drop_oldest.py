"""Drop oldest: the oldest groups of the middle go, and one line marks the gap.

A recap that stands before them stays; the marker of an earlier drop grows into the new one.
"""

from __future__ import annotations

from compaction.context import Context
from compaction.descriptors import dropped_marker
from compaction.edits import Edit
from compaction.eviction import evict, oldest, standing_recap
from compaction.view import View

NAME = "drop_oldest"
MEANING = "The oldest messages, left out; one line marks the gap."

#: Tokens that the marker takes.
_MARKER = 40


def run(view: View, context: Context) -> tuple[View, tuple[Edit, ...]]:
    kept = standing_recap(view, context)
    span = oldest(view, context, room=_MARKER + (kept.message.tokens if kept else 0))
    if span is None or not span.messages:
        return view, ()
    marker = dropped_marker(span.count, span.first, span.last)
    text = f"{kept.message.text}\n\n{marker}" if kept else marker
    reason = f"{len(span.messages)} oldest messages of the middle"
    edits = evict("recap" if kept else NAME, span, context, text=text, reason=reason)
    return view.with_edits(edits), edits
