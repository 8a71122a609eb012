"""The core values: messages, their parts, and the usage of a model call.

A `Message` is one provider message. It contains the provider's JSON (`source`) in addition to the parsed
parts, so that an unedited message is rendered exactly as it was pushed.

Values are never changed in place: an edit creates a new message with `dataclasses.replace`, and an unedited
message is the *same object* in the prompt. `head_verbatim` and `tail_verbatim` rely on this.

`patched` on a part means that its text differs from `source`, whose other fields still apply. On a message it
means that its JSON must be built from the parts and not taken from `source`. It is set by edits, and by
parsing if the provider would reject the pushed JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

JSON = Any  # any value that orjson parses


class Role(StrEnum):
    """The author of a message. In Anthropic's dialect, tool results are parts of user messages."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Text of the user or the model."""

    text: str
    source: JSON = None
    patched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """A model's reasoning. `signature` binds it to the preceding prompt (rules A10 and A11)."""

    text: str
    signature: str | None = None
    redacted: bool = False
    source: JSON = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's request to run a tool. `arguments` is JSON text, unchanged if it was pushed as text.

    `fixed` arguments follow a schema of the provider, and cannot be edited.
    """

    call_id: str
    name: str
    arguments: str
    server: bool = False
    fixed: bool = False
    source: JSON = None
    patched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The output of a tool.

    `text` is its text content joined by newlines, `media_tokens` the estimate of its media. `is_error` is
    None if the dialect has no such flag.
    """

    call_id: str
    text: str
    is_error: bool | None = None
    server: bool = False
    media_tokens: int = 0
    source: JSON = None
    patched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """A block that the core does not interpret: an image, a document or an unknown kind."""

    kind: str
    media_tokens: int = 0
    source: JSON = None


Part = Text | Thinking | ToolCall | ToolResult | Opaque


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One provider message.

    `position` is its number in the session and `turn` the number of its push, both from 0. `tokens` is the
    raw estimate including overhead (see `compaction.sizes.tokens`). `format` is the dialect of `source`, the
    JSON that was pushed; both are None for messages that compaction created.
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
        """The text parts and tool results, without thinking or tool calls."""
        return "\n".join(p.text for p in self.parts if isinstance(p, Text | ToolResult))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(p for p in self.parts if isinstance(p, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        return tuple(p for p in self.parts if isinstance(p, ToolResult))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Reported tokens of one response, with the input in three disjoint parts.

    `input_tokens` is their sum. It is the size of the prompt, unless the provider made several model calls
    for the response: then the counts are sums over `calls`, and `prompt` is the prompt of the last call.
    Anthropic's `input_tokens` is only the uncached part; OpenAI's `prompt_tokens` includes cached tokens and
    is split during parsing.
    """

    uncached_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    prompt: int | None = None
    calls: tuple[Usage, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return {name: getattr(self, name) for name in USAGE_COUNTS}

    @property
    def prompt_tokens(self) -> int:
        """The size of the prompt."""
        return self.input_tokens if self.prompt is None else self.prompt

    @property
    def input_tokens(self) -> int:
        """The input tokens that are billed."""
        return self.uncached_tokens + self.cache_read_tokens + self.cache_write_tokens


#: The names of the counts.
USAGE_COUNTS = ("uncached_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


def usage_sum(usages: Iterable[Usage]) -> Usage:
    """Return the sum. It has no price, because the price of a call may depend on the size of its prompt."""
    counts = [usage.counts for usage in usages]
    total: dict[str, Any] = {name: sum(each[name] for each in counts) for name in USAGE_COUNTS}
    return Usage(**total)


def changes_settings(message: Message) -> bool:
    """Return whether a system message changes tools or settings from its position on.

    These are Anthropic's system messages with `tool_addition`, or with `output_config` and no content, and
    items such as `additional_tools` of OpenAI's Responses API. No text can replace them.
    """
    has_settings = not message.parts or any(isinstance(part, Opaque) for part in message.parts)
    return message.role is Role.SYSTEM and has_settings


def leading_system(messages: Sequence[Message], start: int = 0) -> int:
    """Return the index after the system messages that begin at `start`."""
    rest = range(start, len(messages))
    return next((index for index in rest if messages[index].role is not Role.SYSTEM), len(messages))
