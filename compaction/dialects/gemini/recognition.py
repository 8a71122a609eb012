"""Recognize contents and tools of Gemini's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.dialects.base import Match
from compaction.dialects.declarations import is_gemini_tool
from compaction.dialects.gemini.kinds import (
    CALL,
    DATA,
    FUNCTION,
    MODEL,
    RESPONSE,
    SIGNATURE,
    TEXT,
    USER,
    kind_of,
    spelled,
    value_of,
)
from compaction.messages import JSON

_ROLES = (USER, MODEL, FUNCTION)


def message_error(item: JSON) -> str | None:
    """Return why a JSON value is not a content of this dialect, or None if it is one."""
    if not isinstance(item, dict):
        return "A content must be an object."
    if item.get("role", USER) not in _ROLES:
        return f"`role` must be one of: {', '.join(_ROLES)}."
    parts = item.get("parts")
    if not isinstance(parts, list):
        return "`parts` must be an array."
    if "content" in item:
        return "`content` is not supported."
    for index, part in enumerate(parts):
        if error := _part_error(part):
            return f"`parts[{index}]` {error}"
    return None


def _part_error(part: JSON) -> str | None:
    if not isinstance(part, dict):
        return "must be an object."
    if "type" in part:
        return "has the unknown field `type`."
    kind = kind_of(part)
    if kind is None:
        is_signature = spelled(part, SIGNATURE) is not None
        return None if is_signature else f"must have one of: {', '.join(DATA)}."
    if kind == TEXT:
        return None if isinstance(part[TEXT], str) else "must have a string `text`."
    value = value_of(part, kind)
    if not isinstance(value, dict):
        return f"must have an object `{kind}`."
    return _function_error(kind, value) if kind in (CALL, RESPONSE) else None


def _function_error(kind: str, value: Mapping[str, Any]) -> str | None:
    if not isinstance(value.get("name"), str):
        return f"must have a string `{kind}.name`."
    field = "args" if kind == CALL else "response"
    if value.get(field) is not None and not isinstance(value[field], dict):
        return f"must have an object `{kind}.{field}`."
    return None


def recognizes(item: JSON) -> Match:
    """Return how certain it is that a JSON value is a content of this dialect. No other one has `parts`."""
    return Match.NONE if message_error(item) is not None else Match.CERTAIN


def recognizes_tool(definition: JSON) -> Match:
    """Return how certain it is that a tool definition is in this dialect."""
    return Match.CERTAIN if is_gemini_tool(definition) else Match.NONE
