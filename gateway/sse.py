"""Server-sent events: the JSON objects in a recorded stream."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

#: Events are separated by a blank line, with any of the three line endings.
_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE = re.compile(rb"\r\n|\n|\r")


def events(data: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON object of each complete event. Comments and other data are skipped.

    The bytes are split before they are decoded, so that a character is never split.
    """
    *whole, rest = _BLANK.split(data)
    if rest.strip():
        whole.append(rest)
    for event in whole:
        lines = [line[5:].lstrip(b" ") for line in _LINE.split(event) if line.startswith(b"data:")]
        try:
            value = orjson.loads(b"\n".join(lines))
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield value
