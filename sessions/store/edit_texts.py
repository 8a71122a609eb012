"""The texts of edits, which are stored compressed.

A recap repeats most of the previous one, so its text is compressed with that text as the dictionary, which
takes half the space. To read it, at most `LONGEST` texts are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import LiteralString

from psycopg.types.numeric import Int8

from sessions.store import bodies
from sessions.store.postgres import rows_fetch

LONGEST = 4

#: The stored texts that `text_unpack` needs for the edit `e`: its own is the last one. NULL without an edit.
TEXTS: LiteralString = """
CASE WHEN e.id IS NOT NULL THEN
    ARRAY(SELECT b.text FROM agent_sessions_edit b WHERE b.id = ANY(e.bases) ORDER BY b.id) || e.text
END
"""

_BY_KEY: LiteralString = f"SELECT e.id, {TEXTS} FROM agent_sessions_edit e WHERE e.id = ANY(%s::bigint[])"  # noqa: S608  a constant is inserted

Packed = bytes | memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A stored text that the next one may repeat: the key of its edit, and the text."""

    key: int
    text: bytes

    @classmethod
    def of(cls, key: int, texts: Sequence[Packed]) -> Base | None:
        """Return the base for a text that repeats that of the edit `key`, or None if it must not have one.

        `texts` are the stored texts of the edit (see `TEXTS`).
        """
        return cls(key=key, text=text_unpack(texts)) if len(texts) < LONGEST else None


def text_pack(text: str, base: Base | None) -> bytes:
    data = text.encode()
    return bodies.pack(data) if base is None else bodies.pack_after(data, base.text)


def text_unpack(texts: Sequence[Packed]) -> bytes:
    """Return the last of some stored texts, each of which was packed after the one before it."""
    data = bodies.unpack(texts[0])
    for packed in texts[1:]:
        data = bodies.unpack_after(packed, data)
    return data


def edit_texts(keys: Iterable[int]) -> dict[int, str]:
    """Return the texts of edits by primary key."""
    wanted = list(map(Int8, keys))
    rows = rows_fetch(_BY_KEY, [wanted]) if wanted else ()
    return {key: text_unpack(texts).decode() for key, texts in rows}
