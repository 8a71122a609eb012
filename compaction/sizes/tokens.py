"""Token counting: the protocol of a counter, and the overhead of messages and parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Protocol, runtime_checkable

from compaction.jsontext import dumps
from compaction.messages import Message, Part, Text, Thinking, ToolCall, ToolResult

#: Tokens that providers add to a message (role, separators). OpenAI's cookbook specifies 3; the difference to
#: Anthropic's overhead is smaller than the error of counting with another vocabulary.
MESSAGE_OVERHEAD = 3

#: Tokens around a tool call or result: id, name and the JSON that carries them.
PART_OVERHEAD = 8

#: Tokens of an image of unknown size: 1092 x 1092 pixels at Anthropic, (w * h) / 750.
IMAGE_TOKENS = 1_590


class TokenCounter(Protocol):
    """Counts the tokens of a string. Never fails: special tokens count as plain text.

    Hashable, because counts are cached per counter.
    """

    def count(self, text: str) -> int: ...

    def __hash__(self) -> int: ...


@runtime_checkable
class LineCounter(TokenCounter, Protocol):
    """A counter that counts many short strings at once."""

    def count_lines(self, lines: Sequence[str]) -> list[int]:
        """Return the tokens of each line. Lines begin with a space and end with a letter or digit."""
        ...


#: Number of names whose tokens a process caches. A plan needs thousands, most shared with others.
_REMEMBERED_NAMES = 1 << 15


class NameSizes(dict[str, int]):
    """The tokens of identifiers in a list, by identifier, counted on first use."""

    def __init__(self, counter: TokenCounter) -> None:
        super().__init__()
        self._counter = counter

    def __missing__(self, name: str) -> int:
        self._make_room()
        self[name] = size = self._counter.count(f" {name}")
        return size

    def count(self, names: Iterable[str]) -> None:
        """Count all names that are not counted yet at once, which some counters do faster."""
        if isinstance(self._counter, LineCounter):
            self._make_room()
            # `set.difference` would walk the whole cache, because it is a subclass of `dict`.
            unknown = [name for name in names if name not in self and name[-1].isalnum()]
            sizes = self._counter.count_lines([f" {name}" for name in unknown])
            self.update(zip(unknown, sizes, strict=True))

    def _make_room(self) -> None:
        if len(self) >= _REMEMBERED_NAMES:
            self.clear()


@lru_cache(8)
def name_sizes(counter: TokenCounter) -> NameSizes:
    """Return the sizes shared by all plans with this counter."""
    return NameSizes(counter)


class CharacterCounter:
    """Estimates four characters per token, for tests and for use without a vocabulary."""

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4


def part_tokens(part: Part, counter: TokenCounter) -> int:
    """Return the tokens of one part with its overhead. An unknown block without media counts as JSON."""
    if isinstance(part, Text | Thinking):
        return counter.count(part.text)
    if isinstance(part, ToolResult):
        return PART_OVERHEAD + counter.count(part.text) + part.media_tokens
    if isinstance(part, ToolCall):
        return PART_OVERHEAD + counter.count(part.name) + counter.count(part.arguments)
    return part.media_tokens or counter.count(dumps(part.source))


def text_tokens(part: Part, text: str, counter: TokenCounter) -> int:
    """Return the tokens of a part after an edit that shows `text` instead of its content."""
    tokens = counter.count(text)
    if isinstance(part, ToolCall):
        return PART_OVERHEAD + counter.count(part.name) + tokens
    return PART_OVERHEAD + tokens if isinstance(part, ToolResult) else tokens


def message_tokens(message: Message, counter: TokenCounter) -> int:
    """Return the raw (uncalibrated) estimate of a message's tokens, including its overhead."""
    return MESSAGE_OVERHEAD + sum(part_tokens(part, counter) for part in message.parts)
