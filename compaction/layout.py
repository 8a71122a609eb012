"""Head, middle, tail: which part of a view an edit may touch.

Head: leading system messages and the first user message, the rules and the task. Tail: the recent
messages, walked back until two floors hold, a share of the budget and a number of messages, and then to
where no tool pair is cut. Only the middle between them is ever compressed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from compaction.messages import Message, Role
from compaction.policy import Policy
from compaction.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Indices into a view's entries: head `[0, head_end)`, middle, tail `[tail_start, …)`.

    `bound` says what set the tail's start: `tokens` or `messages`, the floor that was met last; `both`;
    or `all` where everything behind the head is tail. `snapped` counts the messages that joined the tail
    to keep tool pairs whole. Token figures are raw estimates of the messages.
    """

    head_end: int
    tail_start: int
    bound: str
    snapped: int
    head_tokens: int
    middle_tokens: int
    tail_tokens: int


def head_end(messages: Sequence[Message]) -> int:
    """Index behind the head of pushed messages."""
    end = 0
    while end < len(messages) and messages[end].role is Role.SYSTEM:
        end += 1
    if end < len(messages) and messages[end].role is Role.USER and not messages[end].tool_results:
        end += 1
    return end


def split(view: View, *, budget_tokens: int, tail_share: float, tail_messages: int) -> Layout:
    """Where the head ends and the tail begins."""
    messages = view.messages
    pushed = next((i for i, entry in enumerate(view.entries) if entry.is_made), len(messages))
    head = head_end(messages[:pushed])
    start, bound = _tail_start(messages, head, tail_share * budget_tokens, tail_messages)
    snapped = _snap(view.cuts, start, head)
    tokens = [message.tokens for message in messages]
    return Layout(
        head_end=head,
        tail_start=snapped,
        bound=bound,
        snapped=start - snapped,
        head_tokens=sum(tokens[:head]),
        middle_tokens=sum(tokens[head:snapped]),
        tail_tokens=sum(tokens[snapped:]),
    )


def positions_kept(view: View, policy: Policy, *, budget_tokens: int) -> frozenset[int]:
    """The positions of the messages that a compaction under the policy would leave word for word."""
    layout = split(
        view, budget_tokens=budget_tokens, tail_share=policy.tail_share, tail_messages=policy.tail_messages
    )
    kept = (*view.entries[: layout.head_end], *view.entries[layout.tail_start :])
    return frozenset(entry.first for entry in kept)


def _tail_start(
    messages: Sequence[Message], head: int, token_floor: float, message_floor: int
) -> tuple[int, str]:
    """Where both floors hold, and which of them held last."""
    tokens, tokens_at = 0, None
    for start in range(len(messages) - 1, head - 1, -1):
        tokens += messages[start].tokens
        count = len(messages) - start
        if tokens_at is None and tokens >= token_floor:
            tokens_at = count
        if tokens_at is not None and count >= message_floor:
            if tokens_at == message_floor:
                return start, "both"
            return start, "tokens" if tokens_at > message_floor else "messages"
    return min(head, len(messages)), "all"


def _snap(cuts: Collection[int], start: int, head: int) -> int:
    """The nearest index at or before `start` where no tool pair is cut."""
    while start > head and start not in cuts:
        start -= 1
    return start
