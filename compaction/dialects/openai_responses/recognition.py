"""Recognize items of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.dialects.base import Match
from compaction.dialects.blocks import CHAT_FIELDS, parts_error
from compaction.dialects.openai_responses.kinds import (
    CALLS,
    CUSTOM_CALL,
    FUNCTION_CALL,
    INPUT_TEXT,
    ITEMS,
    MEDIA,
    MESSAGE,
    OUTPUT_KINDS,
    OUTPUT_TEXT,
    PATCH_OUTPUT,
    REASONING,
    ROLES,
    call_id_of,
    kind_of,
)
from compaction.messages import JSON

_TEXT_KINDS = frozenset({INPUT_TEXT, OUTPUT_TEXT})
#: The field of each type of part that consists of a text.
_TEXTS = {**dict.fromkeys(_TEXT_KINDS, "text"), "refusal": "refusal"}

#: Fields that must be strings, by the kind of the item.
_STRINGS: Mapping[str, tuple[str, ...]] = {
    FUNCTION_CALL: ("name", "arguments"),
    CUSTOM_CALL: ("name", "input"),
}


def message_error(item: JSON) -> str | None:
    """Return why a JSON value is not an item of this dialect, or None if it is one."""
    if not isinstance(item, dict):
        return "An item must be an object."
    kind = kind_of(item)
    if kind == MESSAGE:
        return _message_error(item)
    if kind not in ITEMS:
        return f"`{kind}` is not a known `type` of an item."
    if kind in CALLS | OUTPUT_KINDS and not isinstance(call_id_of(item), str):
        return f"`{kind}` must have a string `call_id`."
    for field in _STRINGS.get(kind, ()):
        if not isinstance(item.get(field), str):
            return f"`{kind}` must have a string `{field}`."
    is_optional = kind == PATCH_OUTPUT and item.get("output") is None
    if kind in OUTPUT_KINDS and not is_optional and not isinstance(item.get("output"), str | list | dict):
        return f"`{kind}` must have an `output`."
    if kind == REASONING and not isinstance(item.get("summary", []), list):
        return "`summary` must be an array."
    return None


def _message_error(item: Mapping[str, Any]) -> str | None:
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or role not in ROLES:
        return f"`role` must be one of: {', '.join(sorted(ROLES))}."
    if not CHAT_FIELDS.isdisjoint(item) and (fields := [f for f in CHAT_FIELDS if item.get(f)]):
        return f"`{min(fields)}` is not supported."
    if isinstance(content, str):
        return None
    if not isinstance(content, list):
        return "`content` must be a string or an array of content parts."
    return parts_error(content, texts=_TEXTS, others=MEDIA)


def recognizes(item: JSON) -> Match:
    """Return how certain it is that a JSON value is an item of this dialect."""
    if message_error(item) is not None:
        return Match.NONE
    if kind_of(item) != MESSAGE:
        return Match.CERTAIN
    content = item["content"]
    if isinstance(content, list) and any(part["type"] in _TEXT_KINDS | MEDIA for part in content):
        return Match.CERTAIN
    has_refusal = isinstance(content, list) and any(part["type"] == "refusal" for part in content)
    if "phase" in item or ("type" in item and (isinstance(content, str) or has_refusal)):
        return Match.CERTAIN
    return Match.LIKELY if item["role"] == "developer" else Match.POSSIBLE


def recognizes_tool(definition: JSON) -> Match:
    """Return how certain it is that a tool definition is in this dialect."""
    if not isinstance(definition, dict) or not isinstance(definition.get("type"), str):
        return Match.NONE
    if definition["type"] in ("function", "custom"):
        return Match.CERTAIN if isinstance(definition.get("name"), str) else Match.NONE
    return Match.NONE if "name" in definition or "input_schema" in definition else Match.LIKELY
