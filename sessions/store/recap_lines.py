"""Compression of the lines of recaps.

The lines repeat the text of the recap, which repeats the text of the edit that shows it. Stored one after the
other, without JSON, they compress to a few references. In JSON, each escaped newline would end a reference.
The positions of their sources are stored separately.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from sessions.store import bodies

#: The length of the compressed text.
_HEAD = struct.Struct(">I")


def recap_lines_pack(lines: Mapping[str, Any], text: bytes) -> bytes:
    """Compress the JSON value of `RecapLines`. `text` is the text of the edit that shows the recap."""
    texts, sections = [lines["text"]], []
    for title, items in lines["sections"]:
        texts.extend(line for line, _ in items)
        sections.append([title, [[line.count("\n"), *sources] for line, sources in items]])
    packed = bodies.pack_after("\n".join(texts).encode(errors="surrogatepass"), text)
    rest = [lines["first_turn"], lines["last_turn"], texts[0].count("\n"), sections]
    return _HEAD.pack(len(packed)) + packed + bodies.pack(bodies.json_bytes(rest))


def recap_lines_unpack(data: bytes | memoryview, text: bytes) -> dict[str, Any]:
    """Return the value that `recap_lines_pack` compressed with the same text."""
    data = bytes(data)
    start = _HEAD.size
    end = start + _HEAD.unpack_from(data)[0]
    plain = iter(bodies.unpack_after(data[start:end], text).decode(errors="surrogatepass").split("\n"))
    first, last, newlines, sections = bodies.json_value(bodies.unpack(data[end:]))
    return {
        "first_turn": first,
        "last_turn": last,
        "text": _lines(plain, newlines),
        "sections": [
            [title, [[_lines(plain, newlines), sources] for newlines, *sources in items]]
            for title, items in sections
        ],
    }


def _lines(plain: Iterator[str], newlines: int) -> str:
    """Return the next text, which contains this number of newlines."""
    return "\n".join(islice(plain, newlines + 1))
