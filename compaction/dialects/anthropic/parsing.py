"""Parse pushed messages of Anthropic's Messages API.

Each content block becomes one part with the same index, so that an edit of part n changes block n and leaves
the other blocks and all unknown fields (such as `cache_control`) as they were pushed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from compaction.dialects.base import Reading
from compaction.dialects.blocks import (
    as_text,
    called_name,
    joined_text,
    note_of,
    opaque,
    setting,
    text_of,
)
from compaction.jsontext import dumps
from compaction.messages import JSON, Part, Role, Text, Thinking, ToolCall, ToolResult

NAME = "anthropic"

#: Response fields that clients push with the message, but that requests must not contain.
RESPONSE_FIELDS = frozenset({"id", "type", "model", "stop_reason", "stop_sequence", "usage", "container"})

_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")

#: Blocks of system messages that change the tools.
_TOOL_CHANGES = frozenset({"tool_addition", "tool_removal"})

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}


def read(item: Mapping[str, Any]) -> Reading:
    name = as_text(item.get("role"))
    role = _ROLES.get(name, Role.USER)
    parts, is_sound = _parts(item.get("content"), role)
    is_sound = is_sound or is_directive(item)
    return role, parts, is_sound and name in _ROLES and all(map(is_request_field, item)), item


def is_directive(item: Mapping[str, Any]) -> bool:
    """Return whether a message without content changes the effort. It is valid at any position (A9)."""
    return item.get("role") == "system" and item.get("content") == [] and bool(item.get("output_config"))


def is_request_field(name: str) -> bool:
    """Return whether a message of a request may have this field."""
    return name not in RESPONSE_FIELDS and not name.startswith("_")


def _parts(content: JSON, role: Role) -> tuple[tuple[Part, ...], bool]:
    """Return the parts, and whether the content can be sent unchanged."""
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
    text = text_of(block)
    if text is not None:
        return Text(text=text, source=block, patched=kind != "text")
    if kind in _TOOL_CHANGES:
        return setting(block)
    if kind in ("tool_use", "thinking", "redacted_thinking", "text", ""):
        return Text(text=note_of(block, kind), patched=True)
    return opaque(block)


def _call(block: Mapping[str, Any], *, server: bool) -> ToolCall:
    arguments, call_id, name = block.get("input"), as_text(block.get("id")), called_name(block.get("name"))
    sound = isinstance(arguments, Mapping) and name == block.get("name") and is_safe_id(call_id)
    return ToolCall(
        call_id=call_id,
        name=name,
        arguments=dumps(arguments) if arguments is not None else "{}",
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
    text = text_of(block)
    return text is not None and not text.strip()


def _is_unsound(part: Part) -> bool:
    if isinstance(part, Text):
        return part.patched or not part.text.strip()
    return isinstance(part, ToolCall | ToolResult) and part.patched


def is_safe_id(call_id: str) -> bool:
    """Return whether Anthropic accepts this tool call id."""
    return _ID.match(call_id) is not None
