"""JSON as text, tolerant of what real transcripts hold: lone surrogates, huge integers, NaN.

`dumps` is compact and keeps the order of keys; `loads_object` never fails.
"""

from __future__ import annotations

import json

import orjson

from compaction.messages import JSON


def dumps(value: JSON) -> str:
    """Compact JSON text. What orjson refuses (lone surrogates, integers over 64 bits) goes the slow way."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, UnicodeEncodeError):
        return json.dumps(value, separators=(",", ":"), default=str)


def loads(text: str) -> JSON:
    """The value of a JSON text, numbers exact. Raises ValueError, for NaN and Infinity too."""
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
    """The object that `text` holds; anything else stands under the key `arguments`, so nothing is lost."""
    if not text.strip():
        return {}
    try:
        value = loads(text)
    except ValueError:
        value = text
    return value if isinstance(value, dict) else {"arguments": value}


def glance(text: str) -> dict[str, JSON]:
    """`loads_object` at a tenth of its time, for looking only: integers over 64 bits come as floats."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return loads_object(text)
    return value if isinstance(value, dict) else {"arguments": value}


def is_object(text: str) -> bool:
    """Whether `text` is a JSON object, which is what a tool call's arguments have to be."""
    try:
        return isinstance(loads(text), dict)
    except ValueError:
        return False


def _refuse(name: str) -> JSON:
    raise ValueError(f"{name} is not JSON")
