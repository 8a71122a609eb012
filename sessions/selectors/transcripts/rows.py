"""Bulk reads of messages and edits without model instances.

Creating instances takes as long as parsing the JSON of the messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import LiteralString
from uuid import UUID

from psycopg.types.numeric import Int4, Int8

from compaction.edits import Edit, Op
from compaction.messages import Message as MessageValue
from compaction.view import in_force
from sessions.models import AgentSession
from sessions.selectors.convert import value_of
from sessions.store.blobs import body_read
from sessions.store.edit_texts import TEXTS, text_unpack
from sessions.store.postgres import rows_fetch

#: A half-open range of positions.
Span = tuple[int, int]

#: Messages of a batch.
_BATCH = 200

#: A position after every possible message.
END = 2**31 - 1

#: Maximum distance between an output and its call. Outputs of parallel calls follow each other.
CALLS_BEFORE = 16

#: The messages `m` of a session in some spans, and the blobs `b` that contain their bodies.
#: `OFFSET 0` makes every plan read the spans only: a hash or merge join would read the whole session.
IN_SPANS: LiteralString = """
  FROM unnest(%(firsts)s::int[], %(ends)s::int[]) AS span (first, last)
 CROSS JOIN LATERAL (
       SELECT * FROM agent_sessions_message
        WHERE session_id = %(session)s AND position >= span.first AND position < span.last OFFSET 0) m
  LEFT JOIN agent_sessions_blob b ON b.id = m.blob_id
"""

_ROWS: LiteralString = f"""
SELECT m.position, m.turn_index, m.role, m.tokens, m.flags, m.omitted_from,
       coalesce(m.body, b.data), b.project_id, b.sha256
{IN_SPANS}
 ORDER BY m.position
"""

#: The columns of an edit `e`, for `_edit`.
_EDIT: LiteralString = f"""
e.id, e.strategy, e.op, e.position, e."end", e.part, {TEXTS}, e.handle, e.reason, e.tokens_before,
e.tokens_after
"""

_EDITS: LiteralString = f"""
SELECT {_EDIT}
  FROM agent_sessions_edit e
  JOIN agent_sessions_compaction c ON c.id = e.compaction_id
 WHERE e.id = ANY(%s::bigint[])
 ORDER BY c.number, e.ordinal
"""  # noqa: S608  a constant is inserted

#: Compactions in order, with one row for each edit, or one row of NULLs.
_COMPACTIONS: LiteralString = f"""
SELECT c.number, c.snapshot_position, {_EDIT}
  FROM agent_sessions_compaction c
  LEFT JOIN agent_sessions_edit e ON e.compaction_id = c.id
 WHERE c.session_id = %(session)s AND c.state = 'done' AND c.number > %(after)s
   AND c.snapshot_position <= %(end)s
 ORDER BY c.number, e.ordinal
"""  # noqa: S608  a constant is inserted


def spans_of(positions: Iterable[int]) -> list[Span]:
    """Return the spans of ascending positions."""
    spans: list[Span] = []
    for position in positions:
        if spans and spans[-1][1] == position:
            spans[-1] = (spans[-1][0], position + 1)
        else:
            spans.append((position, position + 1))
    return spans


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return the union of spans, in order."""
    found: list[Span] = []
    for first, end in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((first, end))
    return found


@dataclass(slots=True)
class StoredMessage:
    """A message: its JSON as pushed, and the values computed at that time.

    `omitted_from` is as in `Message`.
    """

    position: int
    turn: int
    role: str
    tokens: int
    flags: int
    omitted_from: int | None
    data: bytes

    def value(self, format: str | None) -> MessageValue:
        """Parse the message. `format` is the dialect of the session."""
        return value_of(
            self.data,
            format=format,
            position=self.position,
            turn=self.turn,
            tokens=self.tokens,
            flags=self.flags,
        )


def visible_spans(edits: Iterable[Edit], *, start: int = 0, end: int) -> Sequence[Span]:
    """Return the spans from `start` to `end` that no eviction covers."""
    spans = []
    for first, last in sorted((edit.position, edit.end) for edit in edits if edit.op is Op.EVICT):
        if first > start:
            spans.append((start, first))
        start = max(start, last + 1)
    return [*spans, (start, end)]


def messages_load(session_id: UUID, spans: Iterable[Span]) -> list[StoredMessage]:
    """Return the messages of a session in these spans, in order. Spans must not overlap."""
    firsts, ends = [], []
    for first, end in spans:
        firsts.append(Int4(first))
        ends.append(Int4(end))
    parameters = {"session": session_id, "firsts": firsts, "ends": ends}
    rows = rows_fetch(_ROWS, parameters)
    return [
        StoredMessage(
            position,
            turn,
            role,
            tokens,
            flags,
            omitted_from,
            body_read(data, project_id, sha256, role),
        )
        for position, turn, role, tokens, flags, omitted_from, data, project_id, sha256 in rows
    ]


def message_batches(
    session: AgentSession,
) -> Iterator[tuple[Sequence[StoredMessage], Mapping[int, datetime]]]:
    """Yield all messages of a session in order, with the times of their turns. Memory is bounded."""
    for first in range(0, session.message_count, _BATCH):
        rows = messages_load(session.pk, [(first, first + _BATCH)])
        turns = session.turns.filter(index__in={row.turn for row in rows})
        yield rows, dict(turns.values_list("index", "at"))


def edits_load(keys: Iterable[int]) -> list[tuple[int, Edit]]:
    """Return edits by primary key, each with its key, in the order in which they were made."""
    return [_edit(*row) for row in rows_fetch(_EDITS, [list(map(Int8, keys))])]


def without_covered(edits: Sequence[tuple[int, Edit]]) -> Mapping[int, Edit]:
    """Return the edits that no later one covers, by key and in order."""
    kept = {id(edit) for edit in in_force([edit for _, edit in edits])}
    return {key: edit for key, edit in edits if id(edit) in kept}


def compactions_load(
    session_id: UUID, *, after: int, end: int
) -> list[tuple[int, int, list[tuple[int, Edit]]]]:
    """Return the applied compactions of a session with numbers after `after`, up to the message `end`.

    Each is its number, the number of messages before it, and its edits with their keys.
    """
    rows = rows_fetch(_COMPACTIONS, {"session": session_id, "after": Int4(after), "end": Int4(end)})
    return [
        (number, position, [_edit(*row[2:]) for row in found if row[2] is not None])
        for (number, position), found in groupby(rows, key=itemgetter(0, 1))
    ]


def _edit(
    key: int,
    strategy: str,
    op: str,
    position: int,
    end: int,
    part: int | None,
    texts: Sequence[bytes],
    handle: str | None,
    reason: str,
    before: int,
    after: int,
) -> tuple[int, Edit]:
    """Return an edit with its key, from the columns `_EDIT`."""
    return key, Edit(
        strategy=strategy,
        op=Op(op),
        position=position,
        end=end,
        part=part,
        text=text_unpack(texts).decode(),
        handle=handle,
        reason=reason,
        tokens_before=before,
        tokens_after=after,
    )
