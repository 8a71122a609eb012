"""Read the texts of edits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import LiteralString

from psycopg.types.numeric import Int8

from sessions.store.edit_texts import TEXTS, text_unpack
from sessions.store.postgres import rows_fetch

_TEXTS: LiteralString = f"SELECT e.id, {TEXTS} FROM agent_sessions_edit e WHERE e.id = ANY(%s::bigint[])"  # noqa: S608  a constant is inserted


def edit_texts(keys: Iterable[int]) -> dict[int, str]:
    """Return the texts of edits by primary key."""
    wanted = list(map(Int8, keys))
    rows = rows_fetch(_TEXTS, [wanted]) if wanted else ()
    return {key: text_unpack(texts).decode() for key, texts in rows}
