"""Counting tokens: the protocol that the core asks for, and the overhead that a message adds."""

from __future__ import annotations

from typing import Protocol

from compaction.jsontext import dumps
from compaction.messages import Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult

#: Tokens that providers add around a message (role, separators). OpenAI's cookbook names 3; the
#: difference to Anthropic's is below the error of counting with another vocabulary.
MESSAGE_OVERHEAD = 3

#: Tokens around a tool call or result: id, name and the JSON that carries them.
PART_OVERHEAD = 8

#: What an image costs where its size is not known: a 1092 x 1092 picture at Anthropic, (w * h) / 750.
IMAGE_TOKENS = 1_590


class TokenCounter(Protocol):
    """Counts the tokens of a text. Never fails: special tokens in the text count as plain text."""

    def count(self, text: str) -> int: ...


class CharacterCounter:
    """Four characters a token: the textbook estimate, for tests and where no vocabulary is at hand."""

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4


class OnceCounter:
    """Counts each distinct text once. It keeps the texts, so it is for the length of one plan."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._counter.count(text)
        return known


def part_tokens(part: Part, counter: TokenCounter) -> int:
    """Tokens of one part, overhead included. An unknown block without media counts as its JSON."""
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
    """Tokens of a message: its parts and the overhead of a message. The raw estimate, not calibrated."""
    return MESSAGE_OVERHEAD + sum(part_tokens(part, counter) for part in message.parts)
