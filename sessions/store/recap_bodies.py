"""Compression of complete recaps.

A recap has over a thousand identifiers with numbers. Most identifiers occur in the same order in the text of
the recap, but in the JSON the numbers between them hide this. Stored as three parts, a recap takes half the
bytes: the identifiers, compressed with that text as the dictionary; their numbers; and the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from sessions.store import bodies

#: The lengths of the first two parts.
_HEAD = struct.Struct(">II")

Mention = Sequence[Any]


def recap_pack(recap: Mapping[str, Any], text: bytes) -> bytes:
    """Compress the JSON value of a `compaction.recap.Recap`. `text` is the text that shows it."""
    mentions: list[Mention] = []

    def taken(found: Sequence[Mention]) -> int:
        mentions.extend(found)
        return len(found)

    rest = _with_mentions(recap, taken)
    names = [mention[0] for mention in mentions]
    joined = " ".join(names)
    is_joined = joined.split(" ") == names
    parts = (
        bodies.pack_after(bodies.json_bytes([is_joined, rest]), text),
        bodies.pack_after(joined.encode() if is_joined else bodies.json_bytes(names), text),
        bodies.pack(bodies.json_bytes([mention[1:] for mention in mentions])),
    )
    return _HEAD.pack(len(parts[0]), len(parts[1])) + b"".join(parts)


def recap_unpack(data: bytes | memoryview, text: bytes) -> dict[str, Any]:
    """Return the value that `recap_pack` compressed with the same text."""
    data = bytes(data)
    first, second = _HEAD.unpack_from(data)
    start, middle = _HEAD.size, _HEAD.size + first
    is_joined, rest = bodies.json_value(bodies.unpack_after(data[start:middle], text))
    packed = bodies.unpack_after(data[middle : middle + second], text)
    names = packed.decode().split(" ") if is_joined else bodies.json_value(packed)
    numbers = bodies.json_value(bodies.unpack(data[middle + second :]))
    mentions: Iterator[Mention] = ([name, *each] for name, each in zip(names, numbers, strict=True))
    return _with_mentions(rest, lambda count: list(islice(mentions, count)))


def _with_mentions(recap: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the value with each list of mentions replaced by what `change` returns for it, in order."""
    changed: dict[str, Any] = {}
    for name, value in recap.items():
        if name == "reserve":
            value = change(value)
        elif isinstance(value, list):
            value = [{**item, "mentions": change(item["mentions"])} for item in value]
        changed[name] = value
    return changed
