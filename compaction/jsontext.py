"""JSON functions that tolerate oddities of real transcripts: lone surrogates, huge integers, deep nesting.

`dumps` is compact and keeps the order of keys; `loads_object` never fails. Parsed values are nested at most
`MAX_DEPTH` levels deep, so callers may recurse into them.
"""

from __future__ import annotations

import json
from datetime import datetime
from uuid import UUID

import orjson

from compaction.messages import JSON

#: Maximum nesting depth: far more than in any message, and safe for code that recurses into JSON.
MAX_DEPTH = 100


def dumps(value: JSON) -> str:
    """Return compact JSON text."""
    return dumps_bytes(value).decode()


def dumps_bytes(value: JSON) -> bytes:
    """Return compact JSON bytes. The standard library serializes what orjson rejects."""
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer over 64 bits, a lone surrogate, or deep nesting
        return json.dumps(value, separators=(",", ":"), default=_plain).encode()


def _plain(value: UUID | datetime) -> str:
    """Return a value that only orjson serializes as orjson does."""
    return value.isoformat() if isinstance(value, datetime) else str(value)


def loads(text: str) -> JSON:
    """Parse JSON text with exact numbers. Raises `ValueError` for NaN, Infinity and deep nesting too."""
    try:
        return _bounded(text, _EXACT.decode(text))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def loads_fast(text: str) -> JSON:
    """Parse like `loads`, but ten times as fast. Integers over 64 bits become floats."""
    return _bounded(text, orjson.loads(text))


def loads_bytes(data: bytes) -> JSON:
    """Return the value of JSON bytes. The standard library parses what orjson rejects."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def loads_object(text: str) -> dict[str, JSON]:
    """Parse a JSON object. Any other value is returned under the key `arguments`, so that nothing is lost."""
    if not text.strip():
        return {}
    try:
        value = loads(text)
    except ValueError:
        value = text
    return value if isinstance(value, dict) else {"arguments": value}


def loads_object_fast(text: str) -> dict[str, JSON]:
    """Parse like `loads_object`, with `loads_fast`."""
    try:
        value = loads_fast(text)
    except ValueError:
        return loads_object(text)
    return value if isinstance(value, dict) else {"arguments": value}


def is_object(text: str) -> bool:
    """Return whether `text` is a JSON object, as the arguments of a tool call must be."""
    try:
        return isinstance(loads(text), dict)
    except ValueError:
        return False


def depth_exceeds(value: JSON, limit: int = MAX_DEPTH) -> bool:
    """Return whether a JSON value is nested deeper than `limit` levels. Does not recurse."""
    level = [value]
    for _ in range(limit):
        level = [
            child
            for held in level
            for child in (held.values() if isinstance(held, dict) else held)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def flattened(value: JSON, limit: int = MAX_DEPTH) -> JSON:
    """Return the value with each part that is nested deeper than `limit` levels replaced by its JSON text.

    Raises `RecursionError` for a part that is nested much deeper.
    """
    if not isinstance(value, dict | list):
        return value
    if limit == 0:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return {name: flattened(child, limit - 1) for name, child in value.items()}
    return [flattened(child, limit - 1) for child in value]


def _bounded(text: str, value: JSON) -> JSON:
    """Return the value of `text`. Raises `ValueError` if it is nested too deeply."""
    brackets = text.count("{") + text.count("[")
    if brackets > MAX_DEPTH and isinstance(value, dict | list) and depth_exceeds(value):
        raise ValueError("nested too deeply")
    return value


def _refuse(name: str) -> JSON:
    raise ValueError(f"{name} is not JSON")


#: Creating a decoder takes longer than most texts.
_EXACT = json.JSONDecoder(parse_constant=_refuse)
