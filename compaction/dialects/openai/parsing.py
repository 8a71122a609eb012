"""Parse pushed messages of OpenAI's Chat Completions API.

The parts of a message are, in this order: reasoning (`reasoning_content` or `thinking_blocks`, fields that
gateways add), content, refusal, tool calls. A message with the role `tool` is one `ToolResult`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.dialects.base import Reading
from compaction.dialects.blocks import (
    CHAT_FIELDS,
    as_text,
    called_name,
    joined_text,
    note_of,
    opaque,
    text_of,
)
from compaction.jsontext import dumps, is_object
from compaction.messages import JSON, Part, Role, Text, Thinking, ToolCall, ToolResult

NAME = "openai"

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}

#: Fields that a message may have (C5). The last ones are not in OpenAI's schema, but gateways and open models
#: with this API define them, and some reject messages without them.
KNOWN_FIELDS = frozenset({"role", "content", "name", "annotations", "cache_control"} | CHAT_FIELDS)

_PART_KINDS = frozenset({"image_url", "input_audio", "file"})


def read(item: Mapping[str, Any]) -> Reading:
    name = as_text(item.get("role"))
    role = _ROLES.get(name)
    if name == "function":
        item, role = {**item, "tool_call_id": function_id(item.get("name"))}, Role.TOOL
    parts = _answer(item) if role is Role.TOOL else _parts(item, role)
    role = role or Role.USER
    return role, parts, name in _ROLES and _is_sound(item, role, parts), item


def function_id(name: JSON) -> str:
    """Return the id of a call in the deprecated field `function_call`, which has none."""
    return f"function_{as_text(name)}"


def _is_sound(item: Mapping[str, Any], role: Role, parts: tuple[Part, ...]) -> bool:
    """Return whether the message can be sent unchanged: it follows C3 to C5 and needed no guesses."""
    if any(getattr(part, "patched", False) for part in parts) or not KNOWN_FIELDS.issuperset(item):
        return False
    if item.get("function_call") is not None:
        return False
    if _is_empty(item, "tool_calls") or _is_empty(item, "thinking_blocks"):
        return False
    if role is Role.ASSISTANT and (item.get("tool_calls") or item.get("audio")):
        return item.get("content") is None or _has_content(item)
    return _has_content(item)


def _is_empty(item: Mapping[str, Any], name: str) -> bool:
    return name in item and not item[name]


def _has_content(item: Mapping[str, Any]) -> bool:
    """Return whether the content is a possibly empty string or a non-empty list."""
    content = item.get("content")
    return isinstance(content, str) or (isinstance(content, list) and bool(content))


def _answer(item: Mapping[str, Any]) -> tuple[Part, ...]:
    text, media = joined_text(item.get("content"))
    call_id = item.get("tool_call_id")
    sound = isinstance(call_id, str) and bool(call_id) and _has_content(item)
    return (
        ToolResult(call_id=as_text(call_id), text=text, media_tokens=media, source=item, patched=not sound),
    )


def _parts(item: Mapping[str, Any], role: Role | None) -> tuple[Part, ...]:
    content = item.get("content")
    parts: list[Part] = []
    if role is Role.ASSISTANT and (reasoning := _reasoning(item)) is not None:
        parts.append(Thinking(text=reasoning))
    if isinstance(content, list):
        parts += (_part(block) for block in content)
    elif content is not None:
        parts.append(Text(text=as_text(content)))
    if role is Role.ASSISTANT:
        if isinstance(refusal := item.get("refusal"), str):
            parts.append(Text(text=refusal, source={"type": "refusal", "refusal": refusal}))
        calls = item.get("tool_calls")
        parts += (_call(call) for call in (calls if isinstance(calls, list) else []))
        if isinstance(legacy := item.get("function_call"), Mapping):
            call_id = function_id(legacy.get("name"))
            parts.append(_call({"id": call_id, "type": "function", "function": legacy}))
    return tuple(parts)


def _reasoning(item: Mapping[str, Any]) -> str | None:
    reasoning, blocks = item.get("reasoning_content"), item.get("thinking_blocks")
    if isinstance(reasoning, str):
        return reasoning
    if not isinstance(blocks, list) or not blocks:
        return None
    return "".join(as_text(block.get("thinking")) for block in blocks if isinstance(block, Mapping))


def _part(block: JSON) -> Part:
    if not isinstance(block, Mapping):
        return Text(text=as_text(block), patched=True)
    text, kind = text_of(block), as_text(block.get("type"))
    if text is not None:
        return Text(text=text, source=block, patched=kind != "text")
    if kind == "refusal":
        return Text(text=as_text(block.get("refusal")), source=block)
    if kind in _PART_KINDS:
        return opaque(block)
    return Text(text=note_of(block, kind), patched=True)


def _call(item: JSON) -> ToolCall:
    call: Mapping[str, Any] = item if isinstance(item, Mapping) else {}
    custom = call.get("type") == "custom"
    function = call.get("custom" if custom else "function")
    function = function if isinstance(function, Mapping) else {}
    arguments = {"input": function.get("input")} if custom else function.get("arguments")
    call_id, name = call.get("id"), called_name(function.get("name"))
    text = arguments if isinstance(arguments, str) else dumps(arguments or {})
    is_named = name == function.get("name") and isinstance(call_id, str) and bool(call_id)
    sound = is_named and (custom or text is arguments)
    return ToolCall(
        call_id=as_text(call_id),
        name=name,
        arguments=text,
        source=item,
        patched=not (sound and is_object(text)),
    )
