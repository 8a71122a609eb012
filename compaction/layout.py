"""Head, middle and tail: determines the part of a view that edits may change.

The head is the leading system messages, the first user message and the system messages directly after it, in
which Claude Code lists sub-agents and skills: the rules and the task. If the agent inserted the first user
message, such as a reminder or the output of a command, the head extends to the user's own message that
directly follows.

The tail is the recent messages. It extends back until two minimums are met, a share of the room for messages
and a number of messages, and then to the nearest point that cuts no tool pair. The room is the budget, or the
prompt if that is smaller, without system prompt, tools and working memory: a share of the whole budget would
leave next to nothing to compact beside a long system prompt. A message that alone exceeds the share does not
extend the tail beyond the minimum number of messages, because it would remain in the tail as long as newer
messages are small. Only the middle between head and tail is compacted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from compaction.messages import Message, leading_system
from compaction.provider_summary import is_compaction
from compaction.settings import StrategySettings
from compaction.user_requests import is_client_command, is_inserted, is_of_user
from compaction.view import View

#: Number of user messages at the beginning among which the task is looked for.
_MOST_INSERTED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Indices into a view's entries: head `[0, head_end)`, middle, tail `[tail_start, …)`.

    `bound` is what determined the start of the tail: `tokens` or `messages`, the minimum that was met last;
    `both`; `giant` if a message larger than the share ends it; or `all` if everything after the head belongs
    to the tail. `snapped` counts the messages that were added to the tail to keep tool pairs together. Token
    figures are raw estimates of the messages.
    """

    head_end: int
    tail_start: int
    bound: str
    snapped: int
    head_tokens: int
    middle_tokens: int
    tail_tokens: int


def head_end(messages: Sequence[Message]) -> int:
    """Return the index after the head of pushed messages."""
    end = leading_system(messages)
    ends: list[int] = []
    while len(ends) < _MOST_INSERTED and end < len(messages) and is_of_user(messages[end]):
        is_task = not (is_inserted(messages[end]) or is_client_command(messages[end].text))
        end = leading_system(messages, end + 1)
        if is_task:
            return end
        ends.append(end)
    return ends[0] if ends else end


def split(view: View, settings: StrategySettings, *, budget_tokens: int) -> Layout:
    """Determine where the head ends and the tail begins."""
    messages = view.messages
    pushed = next((i for i, entry in enumerate(view.entries) if entry.is_generated), len(messages))
    head = max(head_end(messages[:pushed]), _summary_end(messages))
    room = min(budget_tokens, view.tokens) - view.components.total
    share = settings.tail_share * max(room, 0)
    start, bound = _tail_start(messages, head, share, settings.tail_messages)
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


def _summary_end(messages: Sequence[Message]) -> int:
    """Return the index after the newest summary of the provider (R4), which must not be edited."""
    found = (index for index in range(len(messages) - 1, -1, -1) if is_compaction(messages[index]))
    return next(found, -1) + 1


def positions_kept(view: View, settings: StrategySettings, *, budget_tokens: int) -> frozenset[int]:
    """Return the positions of the messages that a compaction with these settings would leave unchanged."""
    layout = split(view, settings, budget_tokens=budget_tokens)
    kept = (*view.entries[: layout.head_end], *view.entries[layout.tail_start :])
    return frozenset(entry.first for entry in kept)


def _tail_start(
    messages: Sequence[Message], head: int, min_tokens: float, min_messages: int
) -> tuple[int, str]:
    """Return the index at which both minimums are met, and which of them was met last."""
    tokens, tokens_at = 0, None
    for start in range(len(messages) - 1, head - 1, -1):
        count = len(messages) - start
        if count > min_messages and messages[start].tokens > min_tokens:
            return start + 1, "giant"
        tokens += messages[start].tokens
        if tokens_at is None and tokens >= min_tokens:
            tokens_at = count
        if tokens_at is not None and count >= min_messages:
            if tokens_at == min_messages:
                return start, "both"
            return start, "tokens" if tokens_at > min_messages else "messages"
    return min(head, len(messages)), "all"


def _snap(cuts: Collection[int], start: int, head: int) -> int:
    """Return the nearest index at or before `start` that cuts no tool pair."""
    while start > head and start not in cuts:
        start -= 1
    return start
