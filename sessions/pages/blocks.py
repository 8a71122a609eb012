"""Convert stored messages to the blocks that pages display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.adapters.tiktoken_counter import counter
from compaction.messages import Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult
from sessions.models import Message as MessageRow
from sessions.models import Pin
from sessions.pages.arguments import Argument, argument_text, arguments_of
from sessions.pages.rendering.choice import Shown, output, prose
from sessions.pages.rendering.images import images_of
from sessions.pages.text import OUTPUT, PROSE, FoldRule, visible
from sessions.selectors import convert
from sessions.store.flags import MessageFlag

_MEDIA = {"image": "image", "image_url": "image", "document": "document", "file": "file"}
#: Fold system prompts, reminders and summaries earlier than the conversation itself.
_ASIDE = FoldRule(lines=8, characters=800)
#: Longer parts of a message with several parts are folded without the number of their tokens.
_COUNTED = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a message. `kind` is text, thinking, call, result or media; `part` is its index.

    `tokens` are those of a folded text, None if they are not counted. `images` is a range of the indexes of
    its images.
    """

    kind: str
    part: int
    label: str = ""
    text: Shown | None = None
    tokens: int | None = None
    images: range = range(0)
    arguments: Sequence[Argument] = ()
    call_id: str = ""
    is_error: bool = False
    media_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """A message for display. `voice` is its role, except that tool results have the voice "tool".

    `pinned` states who pinned the message, "" if it is not pinned.
    """

    position: int
    turn: int
    voice: str
    tokens: int
    is_meta: bool
    is_summary: bool
    blocks: Sequence[Block]
    pinned: str = ""


#: The calls of tools by call id.
Calls = dict[str, ToolCall]


def message_view(
    row: MessageRow, format: str | None, calls: Calls, pins: Mapping[int, Pin], *, is_plain: bool = False
) -> MessageView:
    """Build the view of a message. Adds the message's calls to `calls`.

    `pins` are the pins of the session's messages by position. `is_plain`: show unchanged text, without
    Markdown, colors and highlighting.
    """
    value = convert.message_value(row, format)
    calls |= calls_of(value)
    is_summary = bool(row.flags & MessageFlag.CLIENT_SUMMARY)
    is_meta = bool(row.flags & MessageFlag.META)
    rule = _ASIDE if is_summary or is_meta or value.role is Role.SYSTEM else PROSE
    builder = _Blocks(
        rule=rule, calls=calls, is_plain=is_plain, alone=row.tokens if len(value.parts) == 1 else None
    )
    return MessageView(
        position=row.position,
        turn=row.turn_index,
        voice=voice_of(value),
        tokens=row.tokens,
        is_meta=is_meta,
        is_summary=is_summary,
        blocks=[builder.block(part, index) for index, part in enumerate(value.parts)],
        pinned=pin_text(pins[row.position]) if row.position in pins else "",
    )


def pin_text(pin: Pin) -> str:
    """Return who pinned a message, for example "Pinned by olga"."""
    if pin.user is not None:
        return f"Pinned by {pin.user.get_username()}"
    return f"Pinned with the API key “{pin.api_key.name}”" if pin.api_key is not None else "Pinned"


def calls_of(message: Message) -> Calls:
    """Return a message's calls by call id."""
    return {call.call_id: call for call in message.tool_calls}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blocks:
    """Converts the parts of a message. `alone` are the tokens of a message with a single part."""

    rule: FoldRule
    calls: Calls
    is_plain: bool
    alone: int | None

    def block(self, part: Part, index: int) -> Block:
        match part:
            case Text():
                return self._prose("text", part.text, index, self.rule)
            case Thinking():
                label = "thinking (redacted by the provider)" if part.redacted else "thinking"
                return self._prose("thinking", part.text, index, PROSE, label)
            case ToolCall():
                return Block(
                    kind="call",
                    part=index,
                    label=visible(part.name),
                    arguments=arguments_of(part.arguments, is_plain=self.is_plain),
                    call_id=visible(part.call_id),
                )
            case ToolResult():
                return self._result(part, index)
            case Opaque():
                return self._media(part, index)

    def _prose(self, kind: str, text: str, index: int, rule: FoldRule, label: str = "") -> Block:
        shown = prose(text, rule, is_plain=self.is_plain)
        return Block(kind=kind, part=index, label=label, text=shown, tokens=self._tokens(shown, text))

    def _result(self, part: ToolResult, index: int) -> Block:
        call = self.calls.get(part.call_id)
        shown = output(part.text, OUTPUT, call, is_plain=self.is_plain)
        return Block(
            kind="result",
            part=index,
            label=visible(call.name if call is not None else "tool"),
            text=shown,
            tokens=self._tokens(shown, part.text),
            call_id=visible(part.call_id),
            is_error=bool(part.is_error),
            media_tokens=part.media_tokens,
            images=range(len(images_of(part.source)) if part.media_tokens else 0),
        )

    def _media(self, part: Opaque, index: int) -> Block:
        kind = _MEDIA.get(part.kind, part.kind)
        return Block(
            kind="media",
            part=index,
            label=visible(kind),
            media_tokens=part.media_tokens,
            images=range(len(images_of(part.source))),
        )

    def _tokens(self, shown: Shown, text: str) -> int | None:
        if not shown.fold.is_folded:
            return None
        if self.alone is not None:
            return self.alone
        return counter().count(text) if len(text) <= _COUNTED else None
