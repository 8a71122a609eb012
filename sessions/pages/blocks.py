"""What the page shows of a message: its parts as blocks, made of the core's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.messages import Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult
from sessions.models import Message as MessageRow
from sessions.pages.arguments import Argument, argument_text, arguments_of
from sessions.pages.text import OUTPUT, PROSE, Fold, FoldRule, fold, visible
from sessions.selectors import convert
from sessions.store.flags import MessageFlag

_MEDIA = {"image": "image", "image_url": "image", "document": "document", "file": "file"}
#: What nobody said in the conversation itself stands back: system text, reminders, summaries.
_ASIDE = FoldRule(lines=8, characters=800)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One part of a message. `kind` is text, thinking, call, result or media; `part` its number."""

    kind: str
    part: int
    label: str = ""
    text: Fold | None = None
    arguments: Sequence[Argument] = ()
    call_id: str = ""
    is_error: bool = False
    media_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    """A message as the page shows it. `voice` is who speaks: a tool's results stand apart from the user."""

    position: int
    turn: int
    voice: str
    tokens: int
    is_meta: bool
    is_summary: bool
    blocks: Sequence[Block]


def shown_message(row: MessageRow, format: str, tool_names: dict[str, str]) -> ShownMessage:
    """The message for the page. `tool_names` maps call ids to tool names; the message's own are added."""
    value = convert.message_value(row, format)
    tool_names |= calls_of(value)
    is_summary = bool(row.flags & MessageFlag.CLIENT_SUMMARY)
    is_meta = bool(row.flags & MessageFlag.META)
    prose = _ASIDE if is_summary or is_meta or value.role is Role.SYSTEM else PROSE
    return ShownMessage(
        position=row.position,
        turn=row.turn_index,
        voice=voice_of(value),
        tokens=row.tokens,
        is_meta=is_meta,
        is_summary=is_summary,
        blocks=[_block(part, index, prose, tool_names) for index, part in enumerate(value.parts)],
    )


def calls_of(message: Message) -> dict[str, str]:
    """The names of the tools that a message calls, by the ids of the calls."""
    return {call.call_id: call.name for call in message.tool_calls}


def part_text(part: Part, argument: str | None = None) -> str | None:
    """The whole text that a block folds, or None where the part has none."""
    match part:
        case ToolCall():
            return None if argument is None else argument_text(part.arguments, argument)
        case Text(text=text) | Thinking(text=text) | ToolResult(text=text):
            return text
    return None


def voice_of(message: Message) -> str:
    """Who speaks: a tool's results are its own, also where the format has them in a user's message."""
    return "tool" if message.tool_results else str(message.role)


def _block(part: Part, index: int, prose: FoldRule, tool_names: dict[str, str]) -> Block:
    match part:
        case Text():
            return Block(kind="text", part=index, text=fold(part.text, prose))
        case Thinking():
            label = "thinking, redacted by the provider" if part.redacted else "thinking"
            return Block(kind="thinking", part=index, label=label, text=fold(part.text, PROSE))
        case ToolCall():
            return Block(
                kind="call",
                part=index,
                label=visible(part.name),
                arguments=arguments_of(part.arguments),
                call_id=visible(part.call_id),
            )
        case ToolResult():
            return _result(part, index, tool_names)
        case Opaque():
            kind = _MEDIA.get(part.kind, part.kind)
            return Block(kind="media", part=index, label=visible(kind), media_tokens=part.media_tokens)


def _result(part: ToolResult, index: int, tool_names: dict[str, str]) -> Block:
    return Block(
        kind="result",
        part=index,
        label=visible(tool_names.get(part.call_id, "tool")),
        text=fold(part.text, OUTPUT),
        call_id=visible(part.call_id),
        is_error=bool(part.is_error),
        media_tokens=part.media_tokens,
    )
