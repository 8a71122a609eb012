"""JSON text in attributes."""

from __future__ import annotations

from typing import Any

import orjson

from compaction.jsontext import depth_exceeds

#: Nesting beyond which JSON remains text: functions that read it would exceed the recursion limit.
_MAX_DEPTH = 199


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, which may be JSON text."""
    found = parsed(value)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def parsed(value: Any) -> Any:
    """Return the value of JSON text, and any other value unchanged."""
    if not isinstance(value, str):
        return value
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    is_deep = isinstance(found, dict | list) and depth_exceeds(found, _MAX_DEPTH)
    return value if is_deep else found
