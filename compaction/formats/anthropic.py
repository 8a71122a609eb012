"""Anthropic's Messages format: parse what was pushed, make the messages of a prompt.

Every block of a message is one part with the same index, so that an edit of part n patches block n and
leaves the other blocks, and the unknown fields of its own (`cache_control`), as they were pushed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compaction.formats.blocks import (
    as_text,
    from_image_url,
    is_safe_id,
    joined_text,
    note_of,
    opaque,
    safe_id,
    stray,
    text_of,
)
from compaction.jsontext import dumps, loads_object
from compaction.messages import JSON, Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult

NAME = "anthropic"

#: Fields of a response that clients push back with the message, and that a request must not have.
RESPONSE_FIELDS = frozenset({"id", "type", "model", "stop_reason", "stop_sequence", "usage", "container"})

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}


def read(item: JSON, *, position: int, turn: int, tokens: int = 0, pinned: bool = False) -> Message:
    """One message. Tolerates anything, raises nothing."""
    if not isinstance(item, Mapping):
        return stray(item, format=NAME, position=position, turn=turn, tokens=tokens, pinned=pinned)
    name = item.get("role")
    role = _ROLES.get(name, Role.USER) if isinstance(name, str) else Role.USER
    parts, sound = _parts(item.get("content"), role)
    return Message(
        position=position,
        turn=turn,
        tokens=tokens,
        pinned=pinned,
        role=role,
        parts=parts,
        format=NAME,
        source=item,
        patched=not sound or name not in _ROLES or not all(map(_is_request_field, item)),
    )


def _is_request_field(name: str) -> bool:
    return name not in RESPONSE_FIELDS and not name.startswith("_")


def _parts(content: JSON, role: Role) -> tuple[tuple[Part, ...], bool]:
    """The parts, and whether the content can be sent as it is."""
    if isinstance(content, str):
        return (Text(text=content),), bool(content.strip())
    if not isinstance(content, list):
        return ((Text(text=as_text(content)),) if content is not None else ()), False
    parts = tuple(_part(block, role) for block in content)
    return parts, bool(parts) and not any(_is_unsound(part) for part in parts)


def _part(block: JSON, role: Role) -> Part:
    if not isinstance(block, Mapping):
        return Text(text=as_text(block), patched=True)
    kind = as_text(block.get("type"))
    if kind in ("thinking", "redacted_thinking") and role is Role.ASSISTANT:
        return Thinking(
            text=as_text(block.get("thinking")),
            signature=as_text(block.get("signature")) or None,
            redacted=kind == "redacted_thinking",
            source=block,
        )
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use") and role is Role.ASSISTANT:
        return _call(block, server=kind != "tool_use")
    if kind == "tool_result" or (kind.endswith("_tool_result") and role is Role.ASSISTANT):
        return _result(block, server=kind != "tool_result")
    words = text_of(block)
    if words is not None:
        return Text(text=words, source=block, patched=kind != "text")
    if kind in ("tool_use", "thinking", "redacted_thinking", "text", ""):
        return Text(text=note_of(block, kind), patched=True)
    return opaque(block)


def _call(block: Mapping[str, Any], *, server: bool) -> ToolCall:
    held, call_id, name = block.get("input"), as_text(block.get("id")), as_text(block.get("name"))
    sound = isinstance(held, Mapping) and bool(name) and is_safe_id(call_id)
    return ToolCall(
        call_id=call_id,
        name=name or "unknown",
        arguments=dumps(held) if held is not None else "{}",
        server=server,
        source=block,
        patched=not sound,
    )


def _result(block: Mapping[str, Any], *, server: bool) -> ToolResult:
    content, call_id, flag = block.get("content"), as_text(block.get("tool_use_id")), block.get("is_error")
    text, media = joined_text(content)
    sound = content is None or isinstance(content, str | list)
    if isinstance(content, list):
        sound = all(isinstance(part, Mapping) and not _is_blank(part) for part in content)
    return ToolResult(
        call_id=call_id,
        text=text,
        is_error=flag if isinstance(flag, bool) else None,
        server=server,
        media_tokens=media,
        source=block,
        patched=not server and not (sound and is_safe_id(call_id)),
    )


def _is_blank(block: Mapping[str, Any]) -> bool:
    words = text_of(block)
    return words is not None and not words.strip()


def _is_unsound(part: Part) -> bool:
    if isinstance(part, Text):
        return part.patched or not part.text.strip()
    return isinstance(part, ToolCall | ToolResult) and part.patched


def message_json(message: Message) -> dict[str, JSON] | None:
    """One message as Anthropic takes it; None where nothing is left to say.

    Leading system messages are the caller's (`system_field`), as is whether others may stand here (A9).
    """
    if message.format == NAME and not message.patched and message.source is not None:
        return dict(message.source)
    native = message.format == NAME
    blocks = [block for part in message.parts if (block := _block(part, native)) is not None]
    if not blocks:
        return None
    kept = {k: v for k, v in (message.source or {}).items() if native and _is_request_field(k)}
    role = Role.USER if message.role is Role.TOOL else message.role
    if not native and len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return {"role": role.value, "content": blocks[0]["text"]}
    if native and isinstance(kept.get("content"), str) and [*blocks[0]] == ["type", "text"]:
        return {**kept, "role": role.value, "content": blocks[0]["text"]}
    return {**kept, "role": role.value, "content": blocks}


def _block(part: Part, native: bool) -> dict[str, JSON] | None:
    source = part.source if native and isinstance(part.source, Mapping) else None
    if source is not None and not getattr(part, "patched", False):
        return None if isinstance(part, Text) and not part.text.strip() else dict(source)
    match part:
        case Text(text=text):
            return {**(source or {}), "type": "text", "text": text} if text.strip() else None
        case ToolCall(server=True) | ToolResult(server=True) if not native:
            return {"type": "text", "text": _told(part)}
        case ToolCall():
            return {
                **(source or {"type": "tool_use"}),
                "id": safe_id(part.call_id),
                "name": part.name,
                "input": loads_object(part.arguments),
            }
        case ToolResult():
            return _result_block(part, source)
        case Opaque(kind=kind):
            held = part.source if isinstance(part.source, Mapping) else {}
            return from_image_url(held) or {"type": "text", "text": note_of(part.source, kind)}
        case Thinking():
            return None  # without Anthropic's own signature a thinking block is refused


def _result_block(part: ToolResult, source: Mapping[str, Any] | None) -> dict[str, JSON]:
    block: dict[str, JSON] = {
        **(source or {"type": "tool_result"}),
        "tool_use_id": safe_id(part.call_id),
        "content": part.text,
    }
    held = part.source.get("content") if isinstance(part.source, Mapping) else None
    if part.media_tokens and isinstance(held, list):
        media = [item for item in held if isinstance(item, Mapping) and text_of(item) is None]
        if source is None:
            media = [made for item in media if (made := from_image_url(item)) is not None]
        words = [{"type": "text", "text": part.text}] if part.text.strip() else []
        block["content"] = words + media
    if part.is_error is not None:
        block["is_error"] = part.is_error
    return block


def _told(part: ToolCall | ToolResult) -> str:
    if isinstance(part, ToolCall):
        return f"[{part.name} {part.arguments}]"
    return f"[result] {part.text}"


def conversation(messages: Sequence[Message]) -> list[dict[str, JSON]]:
    """The `messages` of a request. Answers to one turn that came as several messages stand in one (A2)."""
    out: list[dict[str, JSON]] = []
    open_answers = False
    for message in messages:
        item = message_json(message)
        if item is None:
            continue
        answers = message.role is Role.TOOL
        if answers and open_answers:
            out[-1] = {**out[-1], "content": [*out[-1]["content"], *item["content"]]}
        else:
            out.append(item)
        open_answers = answers
    return out


def system_field(messages: Sequence[Message], given: JSON) -> JSON:
    """The `system` field: what was given, then the words of leading system messages."""
    blocks = [
        {"type": "text", "text": part.text}
        for message in messages
        for part in message.parts
        if isinstance(part, Text) and part.text.strip()
    ]
    if not blocks:
        return given
    if not given and len(blocks) == 1:
        return blocks[0]["text"]
    first = [{"type": "text", "text": given}] if isinstance(given, str) and given.strip() else given
    return [*(first if isinstance(first, list) else []), *blocks]


def tools_field(tools: JSON) -> list[JSON]:
    """Tool definitions as Anthropic takes them, its own unchanged."""
    return [_tool(tool) for tool in tools if isinstance(tool, Mapping)] if isinstance(tools, list) else []


def _tool(tool: Mapping[str, Any]) -> dict[str, JSON]:
    function = tool.get("function")
    if not isinstance(function, Mapping):
        return dict(tool)
    made: dict[str, JSON] = {"name": function.get("name")}
    if function.get("description"):
        made["description"] = function["description"]
    return {**made, "input_schema": function.get("parameters") or {"type": "object", "properties": {}}}
