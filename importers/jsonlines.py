"""Read the JSON values of a log that may be damaged."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import orjson

from importers.base import Damage, LogFile

_DECODER = json.JSONDecoder()
_BLANK = b" \t\r\n\x00"
_CONTENT = re.compile(rb"[^ \t\r\n\x00]")
_PART_BYTES = 1 << 20
#: The characters between two values on a line.
_GAP = re.compile(r"[ \t\r\x00]*")
#: Errors of reading a value with an unexpected structure.
MALFORMED = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)

_FIRST_LINES = 5
_FIRST_BYTES = 1 << 22  # the first lines may contain a pasted image


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON value of a log and the number of its first line, from 1."""

    line: int
    value: Any


def records(log: LogFile) -> Iterator[Record | Damage]:
    """Yield the values of a JSONL log in order, and `Damage` for a line that is not JSON.

    A line may contain several values if the writer died before the line break. NUL bytes, which a system
    crash can leave, count as blank. Invalid UTF-8 is replaced and reported.
    """
    for number, line in enumerate(lines_of(text_bytes(log.data)), start=1):
        stripped = line.strip(_BLANK)
        if stripped:
            for item in _line_records(log.name, number, stripped):
                yield log.damage(number, item.reason) if isinstance(item, Damage) else item


def lines_of(data: bytes) -> Iterator[bytes]:
    """Yield the lines one by one; `split` would copy the whole log."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start:end]
        start = end + 1
    yield data[start:]


def objects(log: LogFile) -> Iterator[Record | Damage]:
    """Yield the objects of a JSONL log, and `Damage` for any other value."""
    for record in records(log):
        if isinstance(record, Damage) or isinstance(record.value, dict):
            yield record
        else:
            yield log.damage(record.line, "not a JSON object")


def read_records(
    log: LogFile, items: Iterable[Record | Damage], take: Callable[[Record], None]
) -> Iterator[Damage]:
    """Pass each value of the log to `take`. Yield damaged values and those that `take` cannot read."""
    for item in items:
        if isinstance(item, Damage):
            yield item
            continue
        try:
            take(item)
        except MALFORMED as error:
            reason = f"not a record of this format: {type(error).__name__}: {error}"
            yield log.damage(item.line, reason)


def take_messages(
    log: LogFile, messages: Iterable[Any], take: Callable[[int, Any], None]
) -> Iterator[Damage]:
    """Pass each message of a document to `take` with its number, from 1. Yield those that it cannot read."""
    for number, message in enumerate(messages, start=1):
        try:
            take(number, message)
        except MALFORMED as error:
            reason = f"message {number}: {type(error).__name__} {error}"
            yield Damage(file=log.name, line=number, reason=reason)


def list_in(value: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list under a key. Raises LookupError or TypeError."""
    found = value[key]
    if not isinstance(found, list):
        raise TypeError(f"{key} is not a list")
    return found


@lru_cache(maxsize=1)  # cached because recognizing and reading a log parse the same bytes
def document(log: LogFile) -> Any:
    """Return the log as one JSON value, or None if it is not JSON. The value must not be changed."""
    if _first_line(log) is not None:
        return None  # JSONL
    data = text_bytes(log.data)
    start, end = _span(data)
    try:
        return orjson.loads(memoryview(data)[start:end])
    except orjson.JSONDecodeError:
        pass
    try:
        return _sound(json.loads(data[start:end].decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return None


@lru_cache(maxsize=1)
def _first_line(log: LogFile) -> Any:
    """Return the value of the first line, or None if the line is not exactly one value or is the only one."""
    data = text_bytes(log.data)
    start, stop = _span(data)
    end = data.find(b"\n", start, stop)
    return _parsed(data[start:end].rstrip(_BLANK)) if end >= 0 else None


def document_damages(log: LogFile) -> Iterator[Damage]:
    """Yield `Damage` if `document` has replaced invalid UTF-8. Only a part is decoded at a time."""
    data, decoder = text_bytes(log.data), codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), _PART_BYTES):
        pending, _ = decoder.getstate()
        end = start + _PART_BYTES
        try:
            decoder.decode(data[start:end], final=end >= len(data))
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, start - len(pending) + error.start) + 1
            yield Damage(file=log.name, line=line, reason="invalid UTF-8 was replaced")
            return


def values(log: LogFile) -> Iterator[Record | Damage]:
    """Yield the values of a log that is either JSONL or one document on any number of lines."""
    value = document(log)
    if value is None:
        yield from records(log)
    else:
        yield Record(1, value)
        yield from document_damages(log)


@lru_cache(maxsize=1)
def first_value(log: LogFile) -> Any:
    """Return the first of the `values`, to recognize the format; None if it is damaged or missing."""
    if (value := _first_line(log)) is not None:
        return value
    first = list(islice(values(log), 2))  # invalid UTF-8 is reported before the value that contains it
    found = (item.value for item in first if isinstance(item, Record) and item.line == first[0].line)
    return next(found, None)


def forget() -> None:
    """Release the log that was read last, and its parsed content."""
    for cached in (document, first_value, _first_line, _first_lines):
        cached.cache_clear()


def first_objects(log: LogFile, count: int) -> list[dict[str, Any]]:
    """Return the objects on the first `count` lines of a JSONL log, at most 5, to recognize its format."""
    return [value for value in _first_lines(log)[:count] if isinstance(value, dict)]


@lru_cache(maxsize=1)
def _first_lines(log: LogFile) -> list[Any]:
    """Return the value of each of the first lines, or None."""
    lines = text_bytes(log.data[:_FIRST_BYTES]).split(b"\n", _FIRST_LINES)[:_FIRST_LINES]
    return [_parsed(line.strip(_BLANK)) for line in lines]


def text_bytes(data: bytes) -> bytes:
    """Return the log as UTF-8 without a byte order mark, which identifies UTF-16."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").encode()
    return data.removeprefix(b"\xef\xbb\xbf")


def _span(data: bytes) -> tuple[int, int]:
    """Return where the content of a log begins and ends. Stripping its blanks would copy it."""
    found = _CONTENT.search(data)
    start, stop = found.start() if found else 0, len(data)
    while stop > start:
        part = max(start, stop - _PART_BYTES)
        if kept := data[part:stop].rstrip(_BLANK):
            return start, part + len(kept)
        stop = part
    return start, start


def _parsed(line: bytes) -> Any:
    """Return the value of a line, or None if it is not exactly one."""
    found = list(islice(_line_records("", 0, line), 2))
    return found[0].value if len(found) == 1 and isinstance(found[0], Record) else None


def _line_records(name: str, number: int, line: bytes) -> Iterator[Record | Damage]:
    try:
        yield Record(number, orjson.loads(line))
    except orjson.JSONDecodeError:
        yield from _lenient_records(name, number, line)


def _lenient_records(name: str, number: int, line: bytes) -> Iterator[Record | Damage]:
    """Yield values that orjson rejects: several on a line, lone surrogates, NaN, invalid UTF-8."""
    text = line.decode("utf-8", "replace")
    if "\ufffd" in text and "\ufffd".encode() not in line:
        yield Damage(file=name, line=number, reason="invalid UTF-8 was replaced")
    start = 0
    while start < len(text):
        try:
            raw, end = _DECODER.raw_decode(text, start)
            value = _sound(raw)
        except (ValueError, RecursionError) as error:
            yield Damage(file=name, line=number, reason=f"not JSON: {error}")
            return
        yield Record(number, value)
        start = _GAP.match(text, end).end()  # type: ignore[union-attr]


def _sound(value: Any) -> Any:
    """Return the value without lone surrogates, which cannot be encoded as UTF-8."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
