"""Read the messages to index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

from psycopg.types.numeric import Int4, Int8

from compaction.messages import Message
from search.documents import document_of
from search.segments import MOST_MESSAGES, Document
from sessions.selectors.transcripts.rows import CALLS_BEFORE, messages_load
from sessions.store.flags import MessageFlag
from sessions.store.postgres import rows_fetch

_SEGMENTS: LiteralString = """
SELECT id, first, "end", header, files FROM agent_sessions_searchsegment
 WHERE session_id = %(session)s AND "end" <= %(first)s ORDER BY first DESC LIMIT 8
"""
_BLOCKS: LiteralString = """
SELECT segment_id, data FROM agent_sessions_searchblock
 WHERE segment_id = ANY(%s::bigint[]) ORDER BY segment_id, first_term
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedMessages:
    """The next messages of a session to index, from `first` up to, not including, `end`."""

    session_id: UUID
    first: int
    end: int
    last_turn: int
    messages: Sequence[Message]
    documents: Sequence[Document]

    @property
    def is_last(self) -> bool:
        """Whether no message followed them when they were read."""
        return len(self.documents) < MOST_MESSAGES


def messages_to_index(*, session_id: UUID, format: str | None, position: int) -> IndexedMessages | None:
    """Return the messages from `position` on, as many as fit into a segment, or None if there are none.

    `format` is the dialect of the session.
    """
    rows = messages_load(session_id, [(max(position - CALLS_BEFORE, 0), position + MOST_MESSAGES)])
    values = [row.value(format) for row in rows]
    names = {call.call_id: call.name for value in values for call in value.tool_calls}
    new = [(row, value) for row, value in zip(rows, values, strict=True) if row.position >= position]
    if not new:
        return None
    return IndexedMessages(
        session_id=session_id,
        first=position,
        end=new[-1][0].position + 1,
        last_turn=new[-1][0].turn,
        messages=[value for _, value in new],
        documents=[
            document_of(value, names, is_error=bool(row.flags & MessageFlag.ERROR)) for row, value in new
        ],
    )


class StoredSegment(NamedTuple):
    """A stored segment, with its blocks in order."""

    id: int
    first: int
    end: int
    header: bytes
    files: Sequence[str]
    blocks: Sequence[bytes]


def segments_to_merge(*, session_id: UUID, first: int, size: int) -> list[StoredSegment]:
    """Return the segments before message `first` to merge with `size` messages from there on, in order."""
    found: list[tuple[Any, ...]] = []
    for row in rows_fetch(_SEGMENTS, {"session": session_id, "first": Int4(first)}):
        length = row[2] - row[1]
        if length > 2 * size or size + length > MOST_MESSAGES:
            break
        found.insert(0, row)
        size += length
    if not found:
        return []
    rows = rows_fetch(_BLOCKS, [[Int8(row[0]) for row in found]])
    blocks = {id: [data for _, data in group] for id, group in groupby(rows, key=itemgetter(0))}
    return [StoredSegment._make((*row, blocks.get(row[0], ()))) for row in found]
