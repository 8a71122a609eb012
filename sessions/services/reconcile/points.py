"""Recognize the session of a client that names none and rewrites its history.

After each answer, its points are stored: the digest of the history up to the answer, and the digests
without the last messages before it, which the client may leave out or edit later. A request continues the
session with which it shares the longest history up to an answer of the model. Another conversation may
begin with the same question, but it gets a different answer.

One more point is the digest of the last question and its answer alone. It finds the session of a client that
drops the beginning of its history.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import LiteralString, NamedTuple
from uuid import UUID

from django.utils import timezone

from compaction.histories import ONCE_MAX, is_answer, is_distinctive, last_answer_end, leading_system
from compaction.identity import history_digest
from sessions.models import ClientHistory, HistoryPoint
from sessions.services.reconcile.reading import Reading
from sessions.store.postgres import rows_fetch

#: Number of messages at the beginning and at the end of a request whose answers are looked up.
_SEARCHED = 100

#: Number of most recent points with the same digest that are compared.
_COMPARED = 20

#: `omitted` of the points with the last question and its answer only.
_END = 32_767

#: How long points are kept. A request that begins with the whole last history is recognized without them.
_KEPT = timedelta(days=30)

#: The longest history comes first, then a complete one, then one that was not continued since.
_FIND: LiteralString = """
SELECT wanted.size, point.root_id, point.omitted
  FROM unnest(%s::int[], %s::bytea[], %s::int[], %s::int[]) AS wanted (size, digest, least, most)
 CROSS JOIN LATERAL (
       SELECT h.root_id, p.omitted, p.at, p.at = h.updated_at AS is_last
         FROM agent_sessions_historypoint p
         JOIN agent_sessions_clienthistory h ON h.session_id = p.history_id
         JOIN agent_sessions_agentsession s ON s.id = h.session_id
        WHERE p.digest = wanted.digest AND p.omitted BETWEEN wanted.least AND wanted.most
          AND h.caller = %s AND s.project_id = %s
        ORDER BY p.at DESC LIMIT %s) point
 ORDER BY wanted.size DESC, point.omitted > 0, point.is_last DESC, point.at DESC
"""


class _Wanted(NamedTuple):
    """The digest of the first `size` messages of a request, with `least` to `most` messages left out."""

    size: int
    digest: bytes
    least: int
    most: int


def points_save(history: ClientHistory, reading: Reading, *, answers: int) -> None:
    """Store the points of a history that ends with the `answers` to its last request."""
    end = reading.count - answers - reading.first
    if answers == 0 or end < 0:
        return
    found = {reading.digests[-1]: 0}
    leading = leading_system(reading.values) if reading.first == 0 else 0
    for omitted in range(1, ONCE_MAX + 1):
        last = end - omitted
        if last < leading or is_answer(reading.values[last]):
            break
        found.setdefault(history_digest(reading.hashes[end:], start=reading.digests[last]), omitted)
    HistoryPoint.objects.filter(history=history, omitted=_END).delete()
    if end > leading and not is_answer(reading.values[end - 1]):
        found.setdefault(history_digest(reading.hashes[end - 1 :]), _END)
    HistoryPoint.objects.bulk_create(
        HistoryPoint(history=history, digest=digest, omitted=omitted, at=history.updated_at)
        for digest, omitted in found.items()
    )


def points_expire(*, now: datetime | None = None) -> None:
    """Delete old points."""
    HistoryPoint.objects.filter(at__lt=(now or timezone.now()) - _KEPT).delete()


def roots_of_last_answer(reading: Reading, *, project_id: UUID, caller: bytes) -> set[UUID]:
    """Return the ids of the sessions that ended with the last question and answer in a request."""
    values = reading.values
    end = last_answer_end(values)
    first = _first_answer(reading, end)
    if first <= leading_system(values) or not is_distinctive(values[first:end]):
        return set()
    digest = history_digest(reading.hashes[first - 1 : end])
    rows = rows_fetch(_FIND, [[end], [digest], [_END], [_END], caller, project_id, _COMPARED])
    return {root for _, root, _ in rows}


def root_of_points(reading: Reading, *, project_id: UUID, caller: bytes, after: int) -> UUID | None:
    """Return the id of the session that shares the longest history with a request, or None.

    The shared history ends with an answer, and has more than `after` messages. If several sessions share it
    that differ in the messages left out, the session is unknown.
    """
    wanted = list(_wanted(reading, after))
    if not wanted:
        return None
    columns = [list(column) for column in zip(*wanted, strict=True)]
    rows = rows_fetch(_FIND, [*columns, caller, project_id, _COMPARED])
    if not rows:
        return None
    root_id: UUID
    longest, root_id, omitted = rows[0]
    if omitted and len({root for size, root, _ in rows if size == longest}) > 1:
        return None
    return root_id


def _wanted(reading: Reading, after: int) -> Iterator[_Wanted]:
    """Return the digests of a complete history up to each of its answers."""
    values, leading = reading.values, leading_system(reading.values)
    end = len(values)
    while end > max(after, leading):
        if not is_answer(values[end - 1]):
            end -= 1
            continue
        first = _first_answer(reading, end)
        # Before the user's first message, the application has written the answer.
        if first > leading and (end <= _SEARCHED or end > len(values) - _SEARCHED):
            may_omit = is_distinctive(values[first:end])
            yield _Wanted(end, reading.digests[end], 0, ONCE_MAX if may_omit else 0)
            if may_omit:
                digest = history_digest(reading.hashes[first:end], start=reading.digests[first - 1])
                yield _Wanted(end, digest, 1, ONCE_MAX)
        end = first


def _first_answer(reading: Reading, end: int) -> int:
    """Return the index of the first of the answers before `end`, which follow each other."""
    first = end
    while first > 0 and is_answer(reading.values[first - 1]):
        first -= 1
    return first
