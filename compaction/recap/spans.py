"""Which messages a recap replaces: before a model has summarized them, and after."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.messages import Message
from compaction.recap.values import Recap


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted:
    """The messages that a deterministic recap replaces, for a model to summarize in `cap_tokens` instead.

    `messages` are as pushed. The positions `first` to `last` bound the span, including the replacements of
    earlier evictions.
    """

    messages: tuple[Message, ...]
    first: int
    last: int
    cap_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A model's recap that is ready to replace the messages at positions `first` to `last`."""

    recap: Recap
    first: int
    last: int
