"""Render messages for Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compaction.dialects.anthropic.parsing import NAME, is_request_field, is_safe_id
from compaction.dialects.blocks import digested_id, note_of, server_tool_text, system_text, text_of
from compaction.dialects.declarations import NO_ARGUMENTS, TEXT_INPUT
from compaction.dialects.media import anthropic_media, result_blocks
from compaction.jsontext import loads_object
from compaction.messages import JSON, Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult
from compaction.provider_summary import is_signed


def message_json(message: Message) -> list[dict[str, JSON]]:
    """Render one message: none if it has no content.

    Leading system messages belong in `system_field`; the caller decides whether others are allowed (A9).
    """
    if message.format == NAME and not message.patched and message.source is not None:
        return [dict(message.source)]
    native = message.format == NAME
    blocks = [block for part in message.parts if (block := _block(part, message.role, native)) is not None]
    if not blocks:
        return []
    kept = {k: v for k, v in (message.source or {}).items() if native and is_request_field(k)}
    role = Role.USER if message.role is Role.TOOL else message.role
    if not native and len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return [{"role": role.value, "content": blocks[0]["text"]}]
    if native and isinstance(kept.get("content"), str) and [*blocks[0]] == ["type", "text"]:
        return [{**kept, "role": role.value, "content": blocks[0]["text"]}]
    return [{**kept, "role": role.value, "content": blocks}]


def _block(part: Part, role: Role, native: bool) -> dict[str, JSON] | None:
    source = part.source if native and isinstance(part.source, Mapping) else None
    if source is not None and not getattr(part, "patched", False):
        return None if isinstance(part, Text) and not part.text.strip() else dict(source)
    match part:
        case Text(text=text):
            return {**(source or {}), "type": "text", "text": text} if text.strip() else None
        case ToolCall(server=True) | ToolResult(server=True) if not native:
            return {"type": "text", "text": server_tool_text(part)}
        case ToolCall():
            return {
                **(source or {"type": "tool_use"}),
                "id": _safe_id(part.call_id),
                "name": part.name,
                "input": loads_object(part.arguments),
            }
        case ToolResult():
            return _result_block(part, source)
        case Opaque(source=block) if is_signed(block):
            return dict(block)
        case Opaque(kind=kind):
            block = part.source if isinstance(part.source, Mapping) else {}
            media = anthropic_media(block) if role in (Role.USER, Role.TOOL) else None
            return media or {"type": "text", "text": note_of(part.source, kind)}
        case Thinking():
            return None  # Anthropic rejects thinking without its own signature


def _result_block(part: ToolResult, source: Mapping[str, Any] | None) -> dict[str, JSON]:
    block: dict[str, JSON] = {
        **(source or {"type": "tool_result"}),
        "tool_use_id": _safe_id(part.call_id),
        "content": part.text,
    }
    if part.media_tokens and (content := result_blocks(part.source)):
        media = [item for item in content if text_of(item) is None]
        if source is None:
            media = [made for item in media if (made := anthropic_media(item)) is not None]
        text = [{"type": "text", "text": part.text}] if part.text.strip() else []
        block["content"] = text + media
    if part.is_error is not None:
        block["is_error"] = part.is_error
    return block


def conversation(messages: Sequence[Message]) -> list[dict[str, JSON]]:
    """Render the `messages` of a request. Consecutive tool messages become one user message (A2)."""
    out: list[dict[str, JSON]] = []
    open_answers = False
    for message in messages:
        answers = message.role is Role.TOOL
        for item in message_json(message):
            if answers and open_answers:
                out[-1] = {**out[-1], "content": [*out[-1]["content"], *item["content"]]}
            else:
                out.append(item)
            open_answers = answers
    return out


def system_field(messages: Sequence[Message], given: JSON) -> JSON:
    """Return the `system` field: the given value, then the text of the leading system messages."""
    given = system_text(given) if isinstance(given, Mapping) else given
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


def tool_json(tool: Mapping[str, Any]) -> dict[str, JSON]:
    """Render a tool definition; one in this dialect is returned unchanged."""
    if tool.get("type") == "custom" and "input_schema" not in tool:
        custom = tool.get("custom")
        return _definition(custom if isinstance(custom, Mapping) else tool, TEXT_INPUT)
    is_function = tool.get("type") == "function" and isinstance(tool.get("name"), str)
    function = tool if is_function else tool.get("function")
    if not isinstance(function, Mapping):
        return dict(tool)
    return _definition(function, function.get("parameters") or NO_ARGUMENTS)


def _definition(tool: Mapping[str, Any], schema: JSON) -> dict[str, JSON]:
    about = {"description": tool["description"]} if tool.get("description") else {}
    return {"name": tool.get("name"), **about, "input_schema": schema}


def _safe_id(call_id: str) -> str:
    return call_id if is_safe_id(call_id) else digested_id(call_id)
