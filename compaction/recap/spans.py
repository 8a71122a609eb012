"""The messages that a recap replaces, before and after a model has summarized them."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.messages import Message
from compaction.recap.handles import HANDLE_SHARE, Handled, with_handles
from compaction.recap.values import Recap
from compaction.sizes.tokens import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted:
    """The messages that a deterministic recap replaces, for a model to summarize in `cap_tokens` instead.

    `messages` are as pushed. The positions `first` to `last` bound the span, including the replacements of
    earlier evictions. `handles` are those of the evicted descriptors. `requests` are the first and the latest
    request of the user that remain in the prompt.
    """

    messages: tuple[Message, ...]
    first: int
    last: int
    cap_tokens: int
    handles: tuple[Handled, ...] = ()
    requests: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A model's recap that is ready to replace the messages at `positions`, between `first` and `last`.

    The model has not read other messages in between: they were protected when its call began.
    """

    recap: Recap
    first: int
    last: int
    positions: frozenset[int]

    @classmethod
    def of(cls, recap: Recap, evicted: Evicted, counter: TokenCounter) -> Summary:
        """Return the summary of the evicted messages, including the handles of their descriptors."""
        room = int(evicted.cap_tokens * HANDLE_SHARE)
        listed = with_handles(recap, evicted.handles, room=room, counter=counter, files={})
        positions = frozenset(message.position for message in evicted.messages)
        return cls(recap=listed, first=evicted.first, last=evicted.last, positions=positions)
