"""The values that everything else works on: messages, their parts, and a call's usage.

A `Message` is one provider message. It keeps the provider's own JSON (`source`) beside the parts that
the core understands, so that a message nobody edited is rendered as exactly what was pushed.

Nothing here is ever changed in place: an edit makes a new message with `dataclasses.replace`, and an
unedited one is the *same object* in the prompt, which is how `head_verbatim` and `tail_verbatim` are
checked.

`patched` on a part says that its text differs from `source`, whose other fields still stand; on a
message, that its JSON is to be made from the parts and not taken from `source`. An edit sets it, and so
does parsing where a provider would refuse the JSON that was pushed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

JSON = Any  # whatever orjson reads


class Role(StrEnum):
    """Who a message is from. Anthropic has no `tool` role: its tool results stand in user messages."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Words of a person or a model."""

    text: str
    source: JSON = None
    patched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """A model's reasoning. `signature` binds it to what stood before it (provider rules A10, A11)."""

    text: str
    signature: str | None = None
    redacted: bool = False
    source: JSON = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's request to run a tool. `arguments` is JSON text, byte for byte where it came as text."""

    call_id: str
    name: str
    arguments: str
    server: bool = False
    source: JSON = None
    patched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answered. `text` is its text content joined by newlines; media in it is counted in
    `media_tokens`. `is_error` is None where the format has no flag for it."""

    call_id: str
    text: str
    is_error: bool | None = None
    server: bool = False
    media_tokens: int = 0
    source: JSON = None
    patched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """A block that the core does not look into: images, documents, blocks of a kind it does not know."""

    kind: str
    media_tokens: int = 0
    source: JSON = None


Part = Text | Thinking | ToolCall | ToolResult | Opaque


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One provider message.

    `position` numbers it within its session, from 0. `turn` is the push that it came with, from 0.
    `tokens` is its raw estimate, overhead included (see `compaction.tokens`). `format` names the format
    of `source`, the provider's JSON as it was pushed; both are None for a message that we made.
    """

    position: int
    role: Role
    parts: tuple[Part, ...]
    tokens: int = 0
    turn: int = 0
    pinned: bool = False
    format: str | None = None
    source: Mapping[str, JSON] | None = None
    patched: bool = False

    @property
    def text(self) -> str:
        """The message's words: text parts and tool results, without thinking and calls."""
        return "\n".join(p.text for p in self.parts if isinstance(p, Text | ToolResult))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(p for p in self.parts if isinstance(p, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        return tuple(p for p in self.parts if isinstance(p, ToolResult))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model call as the provider reported them, input in three disjoint parts.

    `prompt_tokens` is what the model read. Anthropic's `input_tokens` is already the uncached part;
    OpenAI's `prompt_tokens` includes the cached ones and is split at the door.
    """

    uncached_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        return self.uncached_tokens + self.cache_read_tokens + self.cache_write_tokens


def usage_sum(usages: Iterable[Usage]) -> Usage:
    """The usage of all calls together. It has no price: that of each call may depend on its prompt's size."""
    total = Usage()
    for usage in usages:
        total = Usage(
            uncached_tokens=total.uncached_tokens + usage.uncached_tokens,
            cache_read_tokens=total.cache_read_tokens + usage.cache_read_tokens,
            cache_write_tokens=total.cache_write_tokens + usage.cache_write_tokens,
            output_tokens=total.output_tokens + usage.output_tokens,
        )
    return total


def leading_system(messages: Sequence[Message]) -> int:
    """Return the number of system messages before the first other message."""
    return next((i for i, message in enumerate(messages) if message.role is not Role.SYSTEM), len(messages))
