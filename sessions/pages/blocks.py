"""Convert stored messages to the blocks that pages display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.messages import Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult
from sessions.models import Message as MessageRow
from sessions.models import Pin
from sessions.pages.arguments import Argument, argument_text, arguments_of
from sessions.pages.text import OUTPUT, PROSE, Fold, FoldRule, fold, visible
from sessions.selectors import convert
from sessions.store.flags import MessageFlag

_MEDIA = {"image": "image", "image_url": "image", "document": "document", "file": "file"}
#: Fold system prompts, reminders and summaries earlier than the conversation itself.
_ASIDE = FoldRule(lines=8, characters=800)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a message. `kind` is text, thinking, call, result or media; `part` is its index."""

    kind: str
    part: int
    label: str = ""
    text: Fold | None = None
    arguments: Sequence[Argument] = ()
    call_id: str = ""
    is_error: bool = False
    media_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """A message for display. `voice` is its role, except that tool results have the voice "tool".

    `pinned` says who pinned the message, "" if it is not pinned.
    """

    position: int
    turn: int
    voice: str
    tokens: int
    is_meta: bool
    is_summary: bool
    blocks: Sequence[Block]
    pinned: str = ""


def message_view(
    row: MessageRow, format: str | None, tool_names: dict[str, str], pins: Mapping[int, Pin]
) -> MessageView:
    """Build the view of a message. Adds the message's calls to `tool_names` (tool names by call id).

    `pins` are the pins of the session's messages by position.
    """
    value = convert.message_value(row, format)
    tool_names |= calls_of(value)
    is_summary = bool(row.flags & MessageFlag.CLIENT_SUMMARY)
    is_meta = bool(row.flags & MessageFlag.META)
    prose = _ASIDE if is_summary or is_meta or value.role is Role.SYSTEM else PROSE
    return MessageView(
        position=row.position,
        turn=row.turn_index,
        voice=voice_of(value),
        tokens=row.tokens,
        is_meta=is_meta,
        is_summary=is_summary,
        blocks=[_block(part, index, prose, tool_names) for index, part in enumerate(value.parts)],
        pinned=pin_text(pins[row.position]) if row.position in pins else "",
    )


def pin_text(pin: Pin) -> str:
    """Return who pinned a message, for example "Pinned by olga"."""
    if pin.user is not None:
        return f"Pinned by {pin.user.get_username()}"
    return f"Pinned with the API key “{pin.api_key.name}”" if pin.api_key is not None else "Pinned"


def calls_of(message: Message) -> dict[str, str]:
    """Return the tool names of a message's calls by call id."""
    return {call.call_id: call.name for call in message.tool_calls}


def part_text(part: Part, argument: str | None = None) -> str | None:
    """Return the full text of a part or of one of its arguments, or None if it has none."""
    match part:
        case ToolCall():
            return None if argument is None else argument_text(part.arguments, argument)
        case Text(text=text) | Thinking(text=text) | ToolResult(text=text):
            return text
    return None


def voice_of(message: Message) -> str:
    """Return "tool" for tool results, which some formats send as user messages, otherwise the role."""
    return "tool" if message.tool_results else str(message.role)


def _block(part: Part, index: int, prose: FoldRule, tool_names: dict[str, str]) -> Block:
    match part:
        case Text():
            return Block(kind="text", part=index, text=fold(part.text, prose))
        case Thinking():
            label = "thinking (redacted by the provider)" if part.redacted else "thinking"
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
