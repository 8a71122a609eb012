"""Recognize messages of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.dialects.base import Match
from compaction.dialects.blocks import CHAT_FIELDS
from compaction.messages import JSON

_ROLES = frozenset({"user", "assistant", "system"})

#: Response fields that only Anthropic's messages have.
_OWN_FIELDS = frozenset({"stop_reason", "stop_sequence"})

#: Blocks that are only valid in an assistant message, and the fields that must be strings.
_ASSISTANT_BLOCKS: dict[str, tuple[str, ...]] = {
    "thinking": ("thinking",),
    "redacted_thinking": (),
    "tool_use": ("id", "name"),
    "server_tool_use": ("id", "name"),
    "mcp_tool_use": ("id", "name"),
}

#: Blocks that are valid in any message and have an object as their content.
_MEDIA_BLOCKS = frozenset({"image", "document"})

#: Blocks that are passed on unchanged. Server tools have results of many types; all end in `_tool_result`.
_OTHER_BLOCKS = frozenset(
    {"search_result", "container_upload", "compaction", "fallback", "mcp_tool_listing"}
    | {"tool_addition", "tool_removal", "tool_reference"}
)


def message_error(item: JSON) -> str | None:
    """Return why a JSON value is not a message of this dialect, or None if it is one."""
    if not isinstance(item, dict):
        return "A message must be an object."
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or role not in _ROLES:
        return "`role` must be `user`, `assistant` or `system`."
    if not CHAT_FIELDS.isdisjoint(item) and (fields := [f for f in CHAT_FIELDS if item.get(f)]):
        return f"`{min(fields)}` is not supported."
    if isinstance(content, str):
        return None
    if not isinstance(content, list):
        return "`content` must be a string or an array of content blocks."
    for index, block in enumerate(content):
        if error := _block_error(block, role):
            return f"`content[{index}]` {error}"
    return None


def _block_error(block: JSON, role: str) -> str | None:
    if not isinstance(block, dict):
        return "must be an object."
    kind = block.get("type")
    if not isinstance(kind, str):
        return "must have a `type`."
    if kind == "text":
        return _missing_string(block, ("text",))
    if kind in _ASSISTANT_BLOCKS:
        if role != "assistant":
            return f"is a `{kind}` block, which only assistant messages have."
        return _missing_string(block, _ASSISTANT_BLOCKS[kind])
    if kind == "tool_result":
        return _missing_string(block, ("tool_use_id",)) or _result_error(block.get("content"))
    if kind in _MEDIA_BLOCKS:
        return None if isinstance(block.get("source"), dict) else "must have an object `source`."
    if kind in _OTHER_BLOCKS or kind.endswith("_tool_result"):
        return None
    return f"has the unknown type `{kind}`."


def _missing_string(block: Mapping[str, Any], fields: tuple[str, ...]) -> str | None:
    for field in fields:
        if not isinstance(block.get(field), str):
            return f"must have a string `{field}`."
    return None


def _result_error(content: JSON) -> str | None:
    if content is None or isinstance(content, str):
        return None
    if isinstance(content, list) and all(isinstance(block, dict) for block in content):
        return None
    return "must have a `content` that is a string or an array of content blocks."


def recognizes(item: JSON) -> Match:
    """Return how certain it is that a JSON value is a message of this dialect."""
    if message_error(item) is not None:
        return Match.NONE
    content = item["content"]
    if not _OWN_FIELDS.isdisjoint(item):
        return Match.CERTAIN
    if isinstance(content, str):
        return Match.POSSIBLE
    if item.get("type") == "message" and content:
        return Match.CERTAIN
    if any(block["type"] != "text" or "citations" in block for block in content):
        return Match.CERTAIN
    typical = item["role"] == "assistant" or any("cache_control" in block for block in content)
    return Match.LIKELY if typical and item["role"] != "system" else Match.POSSIBLE


def recognizes_tool(definition: JSON) -> Match:
    """Return how certain it is that a tool definition is in this dialect."""
    if not isinstance(definition, dict) or "function" in definition or "custom" in definition:
        return Match.NONE
    if "input_schema" in definition:
        return Match.CERTAIN
    return Match.POSSIBLE if "name" in definition and definition.get("type") != "function" else Match.NONE
