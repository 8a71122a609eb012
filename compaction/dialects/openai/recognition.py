"""Recognize messages of OpenAI's Chat Completions API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.dialects.base import Match
from compaction.dialects.blocks import CHAT_FIELDS, REASONING_FIELDS, parts_error
from compaction.messages import JSON

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

#: Roles that only this dialect has.
_OWN_ROLES = frozenset({"tool", "function"})

#: Fields that only this dialect has. OpenAI's SDK writes them even if they are null.
_OWN_FIELDS = frozenset({"annotations"} | CHAT_FIELDS)

#: Fields of an assistant message that can replace its content.
_ANSWERS = ("tool_calls", "function_call", "refusal", "audio", *sorted(REASONING_FIELDS))

#: The field of each type of part that consists of a text.
_TEXTS = dict.fromkeys(("text", "input_text", "output_text"), "text")
#: The types of part that only this dialect has, and all that are not a text.
_OWN_PART_KINDS = frozenset({"image_url", "input_audio", "file"})
_PART_KINDS = _OWN_PART_KINDS | {"refusal"}


def message_error(item: JSON) -> str | None:
    """Return why a JSON value is not a message of this dialect, or None if it is one."""
    if not isinstance(item, dict):
        return "A message must be an object."
    role = item.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        return f"`role` must be one of: {', '.join(sorted(_ROLES))}."
    if role == "tool" or not _OWN_FIELDS.isdisjoint(item):
        return _fields_error(item, role) or _content_error(item, role)
    return _content_error(item, role)


def _fields_error(item: Mapping[str, Any], role: str) -> str | None:
    if role == "tool":
        if not isinstance(item.get("tool_call_id"), str):
            return "A tool message must have a string `tool_call_id`."
    elif item.get("tool_call_id"):
        return "Only tool messages have a `tool_call_id`."
    calls, function_call = item.get("tool_calls"), item.get("function_call")
    if not calls and not function_call:
        return None
    if role != "assistant":
        return "Only assistant messages have tool calls."
    if calls and not (isinstance(calls, list) and all(map(_is_call, calls))):
        return "`tool_calls` must be an array of objects with a `function` or `custom` object."
    if function_call and not isinstance(function_call, dict):
        return "`function_call` must be an object."
    return None


def _is_call(call: JSON) -> bool:
    if not isinstance(call, dict):
        return False
    return isinstance(call.get("custom" if call.get("type") == "custom" else "function"), dict)


def _content_error(item: Mapping[str, Any], role: str) -> str | None:
    content = item.get("content")
    if isinstance(content, str):
        return None
    if isinstance(content, list):
        return parts_error(content, texts=_TEXTS, others=_PART_KINDS)
    if content is not None:
        return "`content` must be a string or an array of content parts."
    may_be_null = "content" in item and role in ("assistant", "tool", "function")
    if may_be_null or (role == "assistant" and any(item.get(field) for field in _ANSWERS)):
        return None
    return "`content` is required."


def recognizes(item: JSON) -> Match:
    """Return how certain it is that a JSON value is a message of this dialect."""
    if message_error(item) is not None:
        return Match.NONE
    if item["role"] in _OWN_ROLES or not _OWN_FIELDS.isdisjoint(item):
        return Match.CERTAIN
    content = item.get("content")
    if isinstance(content, list) and any(part["type"] in _OWN_PART_KINDS for part in content):
        return Match.CERTAIN
    is_typical = item["role"] in ("system", "developer") or "name" in item
    return Match.LIKELY if is_typical and "type" not in item else Match.POSSIBLE


def recognizes_tool(definition: JSON) -> Match:
    """Return how certain it is that a tool definition is in this dialect."""
    if not isinstance(definition, dict):
        return Match.NONE
    is_own = isinstance(definition.get("function"), dict) or isinstance(definition.get("custom"), dict)
    return Match.CERTAIN if is_own else Match.NONE
