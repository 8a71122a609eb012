"""Parse a request body into its value, and the exact bytes of the elements of a list in it.

Messages are stored as the bytes that were pushed. Serializing them again would turn 1e5 into 100000.0 and
round integers over 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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


class RawFields(Mapping[str, Any]):
    """The fields of a JSON object, each parsed when it is read."""

    def __init__(self, fields: Mapping[str, msgspec.Raw]) -> None:
        self._fields = fields

    @classmethod
    def of(cls, body: bytes) -> RawFields:
        """Return the fields of a JSON object. Raises `BadJson`."""
        try:
            return cls(_fields.decode(body))
        except msgspec.MsgspecError as error:
            raise BadJson(f"the body is not valid JSON: {error}") from None
        except RecursionError:
            raise _too_deep() from None

    def __getitem__(self, name: str) -> Any:
        """Return a field. Raises `BadJson`."""
        try:
            return orjson.loads(bytes(self._fields[name]))
        except orjson.JSONDecodeError as error:
            raise BadJson(f"the body is not valid JSON: {error}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


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


def read_list(body: bytes, name: str, start: int) -> tuple[dict[str, Any], Any, list[tuple[int, int]]]:
    """Parse like `read_object`. Return the other fields, the field `name`, and its `element_spans`.

    `list_start` returned `start`.
    """
    try:
        fields = dict(_fields.decode(body))
        spans = _spans(body, start, bytes(fields.pop(name)))
        values = [orjson.loads(body[begin:end]) for begin, end in spans]
        others = {each: orjson.loads(bytes(field)) for each, field in fields.items()}
    except (msgspec.MsgspecError, orjson.JSONDecodeError, RecursionError):
        spans = []
    if not spans:  # an empty list, a name that occurs twice, or an error, which `read_object` reports
        others = read_object(body)
        return others, others.pop(name), []
    if depth_exceeds(others) or any(
        body.count(b"{", begin, end) + body.count(b"[", begin, end) > MAX_DEPTH - 2
        and depth_exceeds(value, MAX_DEPTH - 2)
        for value, (begin, end) in zip(values, spans, strict=True)
    ):
        raise _too_deep()
    return others, values, spans


def element_spans(body: bytes, start: int) -> list[tuple[int, int]]:
    """Return the offsets of the beginning and end of each element of a field's list.

    `body` is valid JSON, and `list_start` returned `start`. Returns an empty list if the name of the field
    occurs again, with another list.
    """
    lists = (bytes(field) for field in _fields.decode(body).values())
    return next((spans for data in lists if (spans := _spans(body, start, data))), [])


def _spans(body: bytes, start: int, data: bytes) -> list[tuple[int, int]]:
    """Return the spans of the elements of the list `data` if it begins before `start`."""
    if not data.startswith(b"[") or not body.startswith(data, start - 1):
        return []
    spans, at = [], start
    for element in _elements.decode(data):
        begin = body.index(bytes(element)[:1], at)  # only whitespace and a comma are in between
        at = begin + len(bytes(element))
        spans.append((begin, at))
    return spans
