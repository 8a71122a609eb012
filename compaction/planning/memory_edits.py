"""Create the edit that records the working memory of a compacted prompt."""

from __future__ import annotations

from compaction.edits import Edit, Op
from compaction.planning.request import PlanRequest
from compaction.sizes.tokens import MESSAGE_OVERHEAD
from compaction.view.components import recorded_memory, shown_memory


def memory_edits(request: PlanRequest) -> tuple[Edit, ...]:
    """Return the edit that shows the current working memory after the head.

    Every compaction records it, even if unchanged, so that reverting another one cannot remove it. An empty
    memory is recorded only if it replaces one.
    """
    text, earlier = request.memory_text, request.view.edits
    if not text and recorded_memory(earlier) is None:
        return ()
    shown = shown_memory(earlier)
    head = request.view.entries[: request.layout.head_end]
    at = head[-1].last + 1 if head else 0
    revision = request.memory_revision
    return (
        Edit(
            strategy="memory",
            op=Op.MEMORY,
            position=at,
            end=at,
            text=text,
            reason=f"working memory, revision {revision}" if revision else "working memory",
            tokens_before=shown.tokens_after if shown else 0,
            tokens_after=MESSAGE_OVERHEAD + request.counter.count(text) if text else 0,
        ),
    )
