"""Token counting: the protocol of a counter, and the overhead of messages and parts."""

from __future__ import annotations

from typing import Protocol

from compaction.jsontext import dumps
from compaction.messages import Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult

#: Tokens that providers add to a message (role, separators). OpenAI's cookbook specifies 3; the difference to
#: Anthropic's overhead is smaller than the error of counting with another vocabulary.
MESSAGE_OVERHEAD = 3

#: Tokens around a tool call or result: id, name and the JSON that carries them.
PART_OVERHEAD = 8

#: Tokens of an image of unknown size: 1092 x 1092 pixels at Anthropic, (w * h) / 750.
IMAGE_TOKENS = 1_590


class TokenCounter(Protocol):
    """Counts the tokens of a string. Never fails: special tokens count as plain text."""

    def count(self, text: str) -> int: ...


class CharacterCounter:
    """Estimates four characters per token, for tests and for use without a vocabulary."""

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4


#: Shorter strings are counted faster than they are looked up (characters).
_LOOKED_UP = 64


class OnceCounter:
    """Counts each distinct string once, unless it is short. It holds references to the strings, so use one
    counter per plan."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int:
        if len(text) < _LOOKED_UP:
            return self._counter.count(text)
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._counter.count(text)
        return known


def part_tokens(part: Part, counter: TokenCounter) -> int:
    """Return the tokens of one part with its overhead. An unknown block without media counts as JSON."""
    match part:
        case Text(text=text) | Thinking(text=text):
            return counter.count(text)
        case ToolCall(name=name, arguments=arguments):
            return PART_OVERHEAD + counter.count(name) + counter.count(arguments)
        case ToolResult(text=text, media_tokens=media):
            return PART_OVERHEAD + counter.count(text) + media
        case Opaque(media_tokens=media, source=source):
            return media or counter.count(dumps(source))


def message_tokens(message: Message, counter: TokenCounter) -> int:
    """Return the raw (uncalibrated) estimate of a message's tokens, including its overhead."""
    return MESSAGE_OVERHEAD + sum(part_tokens(part, counter) for part in message.parts)
