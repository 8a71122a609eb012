"""Recap: the oldest groups of the middle go, and one message of four sections stands for them.

A model's summary takes the place where one is ready, else the deterministic extractor. It folds the
recap that stood there before, and the working memory stands with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from compaction.context import Context
from compaction.edits import Edit
from compaction.eviction import Span, evict, oldest
from compaction.messages import Message
from compaction.recap import Recap, extract
from compaction.references import message_references
from compaction.view import View

NAME = "recap"


def run(view: View, context: Context) -> tuple[View, tuple[Edit, ...]]:
    cap = _largest(context)
    span = _ready(view, context) or oldest(view, context, room=cap)
    if span is None or not span.messages:
        return view, ()
    recap = _recap(span, view, context)
    context.recap = recap
    text = "\n\n".join(filter(None, (recap.render(), context.memory_text)))
    edits = evict(
        NAME, span, context, text=text, reason=f"{len(span.messages)} oldest messages of the middle"
    )
    return view.with_edits(edits), edits


def _largest(context: Context) -> int:
    policy = context.policy
    return max(
        policy.recap_tokens_min, min(policy.recap_tokens_max, int(context.budget * policy.recap_share))
    )


def _ready(view: View, context: Context) -> Span | None:
    """The span of the model's summary, where it is still all in the middle."""
    summary = context.summary
    if summary is None:
        return None
    entries = [e for e in context.middle(view) if summary.first <= e.first and e.last <= summary.last]
    return Span.of(entries, view, context) if entries else None


def _recap(span: Span, view: View, context: Context) -> Recap:
    if context.summary is not None:
        return context.summary.recap
    shown = [entry.message for entry in view.entries if entry.first not in span.positions]
    return extract(
        span.messages,
        previous=context.previous,
        counter=context.counter,
        cap_tokens=_cap(span, context),
        visible=_names(shown),
    )


def _cap(span: Span, context: Context) -> int:
    """What stands there now and a share of what goes, within the policy's bounds."""
    standing = sum(entry.message.tokens for entry in span.entries if entry.is_made)
    share = int(sum(message.tokens for message in span.messages) * context.policy.recap_span_share)
    return max(context.policy.recap_tokens_min, min(_largest(context), standing + share))


def _names(messages: Sequence[Message]) -> frozenset[str]:
    return frozenset().union(*(message_references(message) for message in messages))
