"""Parse a request body into its value, and the exact bytes of the elements of a list in it.

Messages are stored as the bytes that were pushed. Serializing them again would turn 1e5 into 100000.0 and
round integers over 64 bits.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import orjson

from compaction.jsontext import MAX_DEPTH, depth_exceeds

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements = msgspec.json.Decoder(list[msgspec.Raw])


class BadJson(ValueError):
    """The text is not JSON, or JSON that cannot be stored unchanged."""


class TooDeep(BadJson):
    """The JSON is nested deeper than `MAX_DEPTH`."""


def read_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object strictly: no NaN, no lone surrogates, UTF-8 only, bounded depth.

    Raises `BadJson` or `TooDeep`.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "depth limit" in error.msg:
            raise _too_deep() from None
        raise BadJson(f"the body is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadJson("the body must be a JSON object")
    if depth_exceeds(value):
        raise _too_deep()
    return value


def _too_deep() -> TooDeep:
    return TooDeep(f"the JSON is nested deeper than {MAX_DEPTH} levels")


def raw_elements(body: bytes, name: str) -> list[bytes]:
    """Return the bytes of each element of the list `name` in a body that `read_object` accepted.

    If the name occurs twice, the last occurrence is used, as in every JSON parser.
    """
    field = _fields.decode(body).get(name)
    if field is None or not (value := bytes(field)).startswith(b"["):
        return []
    return list(map(bytes, _elements.decode(value)))


# -- Without decoding the whole body ---------------------------------------------------------------

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},]', re.DOTALL)
_COLON = re.compile(rb"[ \t\n\r]*:")
_LIST = re.compile(rb"[ \t\n\r]*:[ \t\n\r]*\[")


def list_start(body: bytes, name: str) -> int | None:
    """Return the offset of the first element of the list `name` in a JSON object, or None if there is none.

    Reads the body only up to this offset. A name that is written with escapes is not found.
    """
    quoted, depth = f'"{name}"'.encode(), 0
    for token in _TOKEN.finditer(body):
        kind = body[token.start()]
        if kind in b"{[":
            depth += 1
        elif kind in b"}]":
            depth -= 1
        elif depth == 1 and token[0] == quoted and (found := _LIST.match(body, token.end())):
            return found.end()
    return None


def with_field(body: bytes, name: str, value: bytes) -> bytes:
    """Return a JSON object with this field, which replaces one of the same name; the other bytes stay."""
    quoted, depth, start = f'"{name}"'.encode(), 0, None
    for token in _TOKEN.finditer(body):
        kind = body[token.start()]
        if start is not None and depth == 1 and kind in b",}":
            return body[:start] + value + body[token.start() :]
        if kind in b"{[":
            depth += 1
        elif kind in b"}]":
            depth -= 1
        elif (
            start is None and depth == 1 and token[0] == quoted and (found := _COLON.match(body, token.end()))
        ):
            start = found.end()
    at = body.index(b"{") + 1
    separator = b"" if body[at:].lstrip()[:1] == b"}" else b","
    return body[:at] + quoted + b":" + value + separator + body[at:]


def element_ends(body: bytes, start: int) -> list[int]:
    """Return the offset after each element of the list whose first element is at `start`."""
    ends, depth = [], 0
    for token in _TOKEN.finditer(body, start):
        kind = body[token.start()]
        if kind in b"{[":
            depth += 1
        elif kind in b"}]" and depth:
            depth -= 1
        elif not depth and kind in b",]":
            if kind == ord(",") or body[start : token.start()].strip():
                ends.append(token.start())
            if kind == ord("]"):
                break
    return ends
