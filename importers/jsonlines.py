"""Reading the JSON of a log that may be damaged: whole values, and one value a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from .base import Damage, LogFile

_DECODER = json.JSONDecoder()
_BLANK = b" \t\r\n\x00"
_FIRST_BYTES = 1 << 22  # the first lines may carry a pasted picture


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON value of a log and the line on which it begins, from 1."""

    line: int
    value: Any


def records(log: LogFile) -> Iterator[Record | Damage]:
    """The values of a JSONL log, in order; a line that is not JSON comes as `Damage`.

    A line may hold several values (a writer died before the line break). Runs of NUL bytes, which a
    crashed machine leaves behind, count as blank. Invalid UTF-8 is replaced, and said.
    """
    for number, line in enumerate(text_bytes(log.data).split(b"\n"), start=1):
        stripped = line.strip(_BLANK)
        if stripped:
            yield from _line_records(log.name, number, stripped)


def objects(log: LogFile) -> Iterator[Record | Damage]:
    """The objects of a JSONL log; any other value is `Damage`."""
    for record in records(log):
        if isinstance(record, Damage) or isinstance(record.value, dict):
            yield record
        else:
            yield Damage(file=log.name, line=record.line, reason="a JSON value that is not an object")


def taken(log: LogFile, items: Iterable[Record | Damage], take: Callable[[Record], None]) -> Iterator[Damage]:
    """Hands each of the log's values to `take`; yields what is damaged, and what it makes no sense of."""
    for item in items:
        if isinstance(item, Damage):
            yield item
            continue
        try:
            take(item)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            reason = f"not a record of this format: {type(error).__name__} {error}"
            yield Damage(file=log.name, line=item.line, reason=reason)


@lru_cache(maxsize=1)  # recognising a log and reading it parse the same bytes
def document(log: LogFile) -> Any:
    """The one JSON value that the log is, not to be changed. None where it is not JSON."""
    data = text_bytes(log.data).strip(_BLANK)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return _sound(json.loads(data.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return None


def values(log: LogFile) -> Iterator[Record | Damage]:
    """The values of a log that is either JSONL or one document, on however many lines."""
    first = first_line(log)
    if first and _parsed(first) is None and (value := document(log)) is not None:
        yield Record(1, value)
    else:
        yield from records(log)


def first_objects(log: LogFile, count: int) -> list[dict[str, Any]]:
    """The objects on the first `count` lines of a JSONL log, for recognising it."""
    lines = text_bytes(log.data[:_FIRST_BYTES]).split(b"\n", count)[:count]
    found = (_parsed(line.strip(_BLANK)) for line in lines)
    return [value for value in found if isinstance(value, dict)]


def first_line(log: LogFile) -> bytes:
    """The first line that is not blank."""
    return text_bytes(log.data).lstrip(_BLANK).split(b"\n", 1)[0].strip(_BLANK)


def text_bytes(data: bytes) -> bytes:
    """The log as UTF-8 without a byte order mark; UTF-16 is recognised by its mark."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").encode()
    return data.removeprefix(b"\xef\xbb\xbf")


def _parsed(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _line_records(name: str, number: int, line: bytes) -> Iterator[Record | Damage]:
    try:
        yield Record(number, orjson.loads(line))
    except orjson.JSONDecodeError:
        yield from _lenient_records(name, number, line)


def _lenient_records(name: str, number: int, line: bytes) -> Iterator[Record | Damage]:
    """What orjson refuses: several values on a line, lone surrogates, NaN, bytes that are not UTF-8."""
    text = line.decode("utf-8", "replace")
    if "\ufffd" in text and "\ufffd".encode() not in line:
        yield Damage(file=name, line=number, reason="bytes that are not UTF-8 were replaced")
    start = 0
    while start < len(text):
        try:
            raw, end = _DECODER.raw_decode(text, start)
            value = _sound(raw)
        except (ValueError, RecursionError) as error:
            yield Damage(file=name, line=number, reason=f"not JSON: {error}")
            return
        yield Record(number, value)
        start = end + len(text[end:]) - len(text[end:].lstrip(" \t\r\x00"))


def _sound(value: Any) -> Any:
    """The value without lone surrogates, which no UTF-8 text can hold."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
