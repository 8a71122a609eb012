"""Recap: the oldest groups of the middle go, and one message of four sections stands for them.

A model's summary takes the place where one is ready, else the deterministic extractor. It folds the
recap that stood there before, and the working memory stands with it.
"""

from __future__ import annotations

from compaction.context import Context, Evicted
from compaction.edits import Edit
from compaction.eviction import Span, evict, oldest
from compaction.recap import Recap, extract
from compaction.references import message_references, references
from compaction.view import View

NAME = "recap"
MEANING = "A summary that stands for the oldest turns."


def run(view: View, context: Context) -> tuple[View, tuple[Edit, ...]]:
    made = _summarised(view, context) or _extracted(view, context)
    if made is None:
        return view, ()
    span, recap = made
    context.recap = recap
    text = "\n\n".join(filter(None, (recap.render(), context.memory_text)))
    reason = f"{len(span.messages)} oldest messages of the middle"
    edits = evict(NAME, span, context, text=text, reason=reason)
    return view.with_edits(edits), edits


def _summarised(view: View, context: Context) -> tuple[Span, Recap] | None:
    """The model's summary, where one is ready and its span is still all in the middle."""
    summary = context.summary
    if summary is None:
        return None
    entries = [e for e in context.middle(view) if summary.first <= e.first and e.last <= summary.last]
    span = Span.of(entries, view, context)
    return (span, summary.recap) if span.messages else None


def _extracted(view: View, context: Context) -> tuple[Span, Recap] | None:
    largest = _largest(view, context)
    span = oldest(view, context, room=largest + context.counter.count(context.memory_text))
    if span is None or not span.messages:
        return None
    cap = _cap(span, context, largest)
    context.evicted = Evicted(messages=span.messages, first=span.first, last=span.last, cap_tokens=cap)
    shown = [entry.message for entry in view.entries if entry.first not in span.positions]
    recap = extract(
        span.messages,
        previous=context.previous,
        counter=context.counter,
        cap_tokens=cap,
        visible=message_references(*shown) | references(context.memory_text),
        mentions=context.mentions,
    )
    return span, recap


def _largest(view: View, context: Context) -> int:
    """A share of the budget within the policy's bounds; half of it where head and tail leave no more."""
    policy = context.policy
    share = int(context.budget * policy.recap_share)
    left = context.goal - view.tokens + sum(entry.message.tokens for entry in context.middle(view))
    return max(policy.recap_tokens_min, min(policy.recap_tokens_max, share, max(left, share // 2)))


def _cap(span: Span, context: Context, largest: int) -> int:
    """What stands there now and a share of what goes, at most the largest."""
    standing = sum(entry.message.tokens for entry in span.entries if entry.is_made)
    share = int(sum(message.tokens for message in span.messages) * context.policy.recap_span_share)
    return max(context.policy.recap_tokens_min, min(largest, standing + share))
