"""Render messages for OpenAI's Chat Completions API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compaction.dialects.blocks import (
    REASONING_FIELDS,
    digested_id,
    error_text,
    note_of,
    server_tool_text,
    system_text,
)
from compaction.dialects.declarations import NO_ARGUMENTS
from compaction.dialects.media import chat_media, result_blocks
from compaction.dialects.openai.parsing import KNOWN_FIELDS, NAME
from compaction.invariants.pairs import calls_of
from compaction.jsontext import dumps, is_object, loads_object
from compaction.messages import JSON, Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult

#: OpenAI rejects longer tool call ids.
_MAX_ID = 40


def message_json(message: Message, native_ids: frozenset[str] = frozenset()) -> list[dict[str, JSON]]:
    """Render one message: several if it has several tool results, none if it has no content.

    `native_ids` are the call ids of messages that are already in this dialect. They are not shortened.
    """
    native = message.format == NAME
    if native and not message.patched and message.source is not None:
        return [dict(message.source)]
    kept = {k: v for k, v in (message.source or {}).items() if native and k in KNOWN_FIELDS}
    if message.role is Role.ASSISTANT:
        return _assistant(message, kept, native, native_ids)
    results = [_result_json(part, kept, native, native_ids) for part in message.tool_results]
    media = [] if native else [block for part in message.tool_results for block in _media(part)]
    content = [block for part in message.parts if (block := _content(part, message, native)) is not None]
    if not media and not content:
        return results
    role = "system" if message.role is Role.SYSTEM else "user"
    if native and kept.get("role") == "developer":
        role = "developer"
    kept = {k: v for k, v in kept.items() if k != "tool_call_id" and not results}
    return [*results, {**kept, "role": role, "content": _plain(media + content)}]


def _assistant(
    message: Message, kept: dict[str, JSON], native: bool, native_ids: frozenset[str]
) -> list[dict[str, JSON]]:
    calls = [_call_json(part, native, native_ids) for part in calls_of(message)]
    content = [block for part in message.parts if (block := _content(part, message, native)) is not None]
    if not calls and not content:
        return []
    item: dict[str, JSON] = {**kept, "role": "assistant", "content": _plain(content) if content else None}
    removed = {"tool_calls", "function_call", "refusal"}
    if not any(isinstance(part, Thinking) for part in message.parts):
        removed |= REASONING_FIELDS
    for field in removed:
        item.pop(field, None)
    if calls:
        item["tool_calls"] = calls
    return [item]


def _plain(blocks: list[dict[str, JSON]]) -> JSON:
    """Return a string if all blocks are plain text, otherwise the blocks."""
    if all(block.keys() == {"type", "text"} for block in blocks):
        return "\n\n".join(block["text"] for block in blocks)
    return blocks


def _content(part: Part, message: Message, native: bool) -> dict[str, JSON] | None:
    """Return a content part of a message. Only those of users contain media."""
    source = part.source if native and isinstance(part.source, Mapping) else None
    match part:
        case Text(text=text, patched=False) if source is not None:
            return dict(source)
        case Text(text=text):
            return {**(source or {}), "type": "text", "text": text} if text else None
        case Opaque(kind=kind):
            block = part.source if isinstance(part.source, Mapping) else {}
            made = dict(block) if native else chat_media(block)
            takes_media = native or message.role in (Role.USER, Role.TOOL)
            if made is None or (not takes_media and made.get("type") != "text"):
                return {"type": "text", "text": note_of(part.source, kind)}
            return made
        case ToolCall(server=True) | ToolResult(server=True):
            return {"type": "text", "text": server_tool_text(part)}
    return None


def _call_json(part: ToolCall, native: bool, native_ids: frozenset[str]) -> dict[str, JSON]:
    source = part.source if native and isinstance(part.source, Mapping) else {}
    if source and not part.patched:
        return dict(source)
    arguments = part.arguments if is_object(part.arguments) else dumps(loads_object(part.arguments))
    function = {"name": part.name, "arguments": arguments}
    call_id = part.call_id if native else _id(part.call_id, native_ids)
    return {"id": call_id, "type": "function", "function": function}


def _result_json(
    part: ToolResult, kept: dict[str, JSON], native: bool, native_ids: frozenset[str]
) -> dict[str, JSON]:
    if native and not part.patched:
        return {**kept, "role": "tool", "tool_call_id": part.call_id}
    extra = {k: v for k, v in kept.items() if k not in ("content", "name")}
    call_id = part.call_id if native else _id(part.call_id, native_ids)
    return {**extra, "role": "tool", "tool_call_id": call_id, "content": error_text(part)}


def _media(part: ToolResult) -> list[dict[str, JSON]]:
    """Return the images of a tool result for a user message, because tool messages only contain text."""
    if not part.media_tokens:
        return []
    media = [block for item in result_blocks(part.source) if (block := chat_media(item))]
    return [{"type": "text", "text": f"[media in the result of {part.call_id}]"}, *media] if media else []


def _id(call_id: str, native_ids: frozenset[str]) -> str:
    return call_id if len(call_id) <= _MAX_ID or call_id in native_ids else digested_id(call_id)


def _native_ids(messages: Sequence[Message]) -> frozenset[str]:
    """Return the long call ids of the messages that are already in this dialect."""
    parts = (part for message in messages if message.format == NAME for part in message.parts)
    ids = (part.call_id for part in parts if isinstance(part, ToolCall | ToolResult))
    return frozenset(call_id for call_id in ids if len(call_id) > _MAX_ID)


def conversation(messages: Sequence[Message]) -> list[dict[str, JSON]]:
    """Render the `messages` of a request. Media of tool results follow the last result (C1)."""
    out: list[dict[str, JSON]] = []
    postponed: list[dict[str, JSON]] = []
    native_ids = _native_ids(messages)
    for message in messages:
        items = message_json(message, native_ids)
        results = [item for item in items if item.get("role") == "tool"]
        rest = [item for item in items if item.get("role") != "tool"]
        if results:
            out += results
            postponed += rest
            continue
        out += postponed + rest
        postponed = []
    return out + postponed


def without_reasoning(items: list[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """Return the messages without their reasoning. Drops messages that have no other content."""
    kept = ({k: v for k, v in item.items() if k not in REASONING_FIELDS} for item in items)
    return [
        item
        for item in kept
        if item.get("content") is not None or item.get("tool_calls") or item.get("audio")
    ]


def system_message(given: JSON) -> list[dict[str, JSON]]:
    """Return another dialect's `system` field as a system message, or an empty list if it is empty."""
    text = system_text(given)
    return [{"role": "system", "content": text}] if text.strip() else []


def tool_json(tool: Mapping[str, Any]) -> dict[str, JSON] | None:
    """Render a tool definition; one in this dialect is returned unchanged, None for a server tool."""
    if "function" in tool or (tool.get("type") == "custom" and "custom" in tool):
        return dict(tool)
    if tool.get("type") in ("function", "custom") and isinstance(tool.get("name"), str):
        kind = tool["type"]
        return {"type": kind, kind: {name: value for name, value in tool.items() if name != "type"}}
    if "input_schema" not in tool and ("type" in tool or "name" not in tool):
        return None
    function: dict[str, JSON] = {"name": tool.get("name")}
    if tool.get("description"):
        function["description"] = tool["description"]
    function["parameters"] = tool.get("input_schema", NO_ARGUMENTS)
    return {"type": "function", "function": function}
