"""JSON text that tolerates what occurs in real transcripts: lone surrogates, huge integers, NaN.

`dumps` is compact and keeps the order of keys; `loads_object` never fails.
"""

from __future__ import annotations

import json

import orjson

from compaction.messages import JSON


def dumps(value: JSON) -> str:
    """Return compact JSON text. The standard library serializes what orjson rejects."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, UnicodeEncodeError):
        return json.dumps(value, separators=(",", ":"), default=str)


def loads(text: str) -> JSON:
    """Parse JSON text with exact numbers. Raises `ValueError`, also for NaN and Infinity."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


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
    """Parse like `loads_object`, ten times as fast, for inspection: integers over 64 bits become floats."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return loads_object(text)
    return value if isinstance(value, dict) else {"arguments": value}


def is_object(text: str) -> bool:
    """Return whether `text` is a JSON object, as the arguments of a tool call must be."""
    try:
        return isinstance(loads(text), dict)
    except ValueError:
        return False


def _refuse(name: str) -> JSON:
    raise ValueError(f"{name} is not JSON")
