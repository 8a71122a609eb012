"""JSON text in attributes."""

from __future__ import annotations

from typing import Any

import orjson

#: Nesting beyond which JSON remains text: functions that read it would exceed the recursion limit.
_MAX_DEPTH = 200


def parsed(value: Any) -> Any:
    """Return the value of JSON text, and any other value unchanged."""
    if not isinstance(value, str):
        return value
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    return value if _is_deep(found) else found


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        nested = [each for each in level if isinstance(each, dict | list)]
        level = [child for each in nested for child in (each.values() if isinstance(each, dict) else each)]
        if not level:
            return False
    return True
