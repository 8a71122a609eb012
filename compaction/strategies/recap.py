"""Recap: replace the oldest groups of the middle with one message of four sections.

Uses a model's summary if one is ready, otherwise the deterministic extractor. The new recap includes the
previous one and does not repeat names that the working memory contains.
"""

from __future__ import annotations

from compaction.context import Context
from compaction.eviction import Span, evict, evicted_handles, is_worthwhile, oldest
from compaction.identifiers.texts import message_references
from compaction.recap import Recap, extract
from compaction.recap.spans import Evicted
from compaction.strategies.base import StepResult, Strategy
from compaction.user_requests import shown_requests
from compaction.view import View

NAME = "recap"


def run(view: View, context: Context) -> StepResult:
    summarized = _summarized(view, context)
    if summarized:
        return _result(view, context, *summarized)
    largest = _largest_cap(view, context)
    span = oldest(view, context, room=largest)
    if not span.messages:
        return StepResult(view=view)
    cap = _cap(span, context, largest)
    if not _is_worthwhile(span, view, context, cap):
        return StepResult(view=view, is_declined=True)
    handles = evicted_handles(span, view, context)
    evicted = Evicted(
        messages=span.messages,
        first=span.first,
        last=span.last,
        cap_tokens=cap,
        handles=handles,
        requests=shown_requests([entry for entry in view.entries if entry.first not in span.positions]),
    )
    return _result(view, context, span, _extracted(evicted, span, view, context), evicted)


def _is_worthwhile(span: Span, view: View, context: Context, cap: int) -> bool:
    """Whether evicting the span saves enough even if the recap takes its whole cap, as most do.

    Extracting a recap takes most of the time of a plan.
    """
    gain = sum(entry.message.tokens for entry in span.entries) - cap
    kept = view.places.keys() - span.positions
    return is_worthwhile(view, context, gain=gain, kept=kept)


def _result(
    view: View, context: Context, span: Span, recap: Recap, evicted: Evicted | None = None
) -> StepResult:
    reason = f"{span.label} in the middle"
    tokens = recap.tokens(context.counter)
    edits = evict(NAME, span, context, text=recap.render(), tokens=tokens, reason=reason)
    return StepResult.of(view, edits, recap=recap, evicted=evicted)


def _summarized(view: View, context: Context) -> tuple[Span, Recap] | None:
    """Return the model's summary if one is ready, and the messages that it summarizes in the middle."""
    summary = context.summary
    if summary is None:
        return None
    within = [e for e in context.middle(view) if summary.first <= e.first and e.last <= summary.last]
    entries = [e for e in within if e.is_generated or e.first in summary.positions]
    span = Span.of(entries, view, context)
    return (span, summary.recap) if span.messages else None


def _extracted(evicted: Evicted, span: Span, view: View, context: Context) -> Recap:
    shown = [
        entry.message
        for entry in view.entries
        if entry.first not in span.positions and context.in_middle(entry.first)
    ]
    return extract(
        evicted.messages,
        previous=context.previous,
        counter=context.counter,
        cap_tokens=evicted.cap_tokens,
        visible=message_references(*shown) | context.fixed_names,
        handles=evicted.handles,
        later=[entry.message for entry in view.entries if entry.first > evicted.last],
    )


def _largest_cap(view: View, context: Context) -> int:
    """Return the maximum cap: a share of the room for messages, limited by the policy and what is free."""
    settings = context.settings
    share = int(max(context.budget_tokens - view.components.total, 0) * settings.recap_share)
    left = context.goal - view.tokens + sum(entry.message.tokens for entry in context.middle(view))
    return max(settings.recap_tokens_min, min(settings.recap_tokens_max, share, max(left, share // 2)))


def _cap(span: Span, context: Context, largest: int) -> int:
    """Return the cap: the replaced recap's size plus a share of the evicted messages, at most `largest`."""
    previous = sum(entry.message.tokens for entry in span.entries if entry.is_generated)
    share = int(sum(message.tokens for message in span.messages) * context.settings.recap_span_share)
    return max(context.settings.recap_tokens_min, min(largest, previous + share))


STRATEGY = Strategy(
    name=NAME,
    meaning="A summary that replaces the oldest turns.",
    description="Replaces the oldest groups with one message of four sections.",
    run=run,
)
