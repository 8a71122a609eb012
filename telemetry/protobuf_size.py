"""Count the messages in a protobuf message before it is parsed.

A parsed message takes much more memory than its bytes: an empty span two bytes, but 180 bytes of memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

#: Nesting at which the parser rejects a message.
_MAX_DEPTH = 100

_VARINT, _FIXED_64, _BYTES, _GROUP_START, _GROUP_END, _FIXED_32 = range(6)


class _Exceeded(Exception):
    """There are more messages than allowed."""


def messages_exceed(data: bytes, kind: Any, most: int) -> bool:
    """Return whether a message contains more than `most` others. `kind` is its descriptor.

    Malformed data is skipped, because the parser reports it.
    """
    if len(data) <= 2 * most:  # each takes two bytes
        return False
    try:
        _left(data, 0, len(data), kind, most, _MAX_DEPTH)
    except _Exceeded:
        return True
    return False


def _left(data: bytes, at: int, end: int, kind: Any, left: int, depth: int) -> int:
    """Return how many more messages are allowed after those in `data[at:end]`. Raises `_Exceeded`."""
    inner = _inner_kinds(kind)
    try:
        while at < end and depth:
            tag, at = _varint(data, at)
            wire_type = tag & 7
            if wire_type == _BYTES:
                length, at = _varint(data, at)
                found = inner.get(tag >> 3)
                if found is not None:
                    left -= 1
                    if left < 0:
                        raise _Exceeded
                    left = _left(data, at, min(at + length, end), found, left, depth - 1) if length else left
                at += length
            elif wire_type == _VARINT:
                _, at = _varint(data, at)
            elif wire_type in (_FIXED_64, _FIXED_32):
                at += 8 if wire_type == _FIXED_64 else 4
            elif wire_type not in (_GROUP_START, _GROUP_END):
                break
    except IndexError:
        pass
    return left


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at an offset, and the offset after it."""
    value = shift = 0
    while (byte := data[at]) > 0x7F:
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
    return value | byte << shift, at + 1


@cache
def _inner_kinds(kind: Any) -> Mapping[int, Any]:
    """Return the descriptors of the fields that are messages, by number."""
    return {field.number: field.message_type for field in kind.fields if field.message_type is not None}
