"""Index the messages of sessions for the search.

A worker indexes new messages; pushes do not. New messages become a small segment, which is merged with the
preceding segments of similar size, so that every message is merged only a few times.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import LiteralString
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from compaction.messages import Message
from search.documents import touched_files
from search.keys import project_salt, segment_keys
from search.segments import MOST_MESSAGES, Header, Segment, segment_build
from sessions.models import AgentSession, SearchBlock, SearchSegment, SearchState, Turn
from sessions.selectors.recent_activity import sessions_active_since
from sessions.selectors.search.documents import IndexedMessages, messages_to_index
from sessions.services.claims import claim, is_free, release, revoke, still_own
from sessions.services.dispatch import search_index_dispatch
from sessions.store.postgres import execute, raw_connection, rows_copy

log = logging.getLogger(__name__)

#: Period that the frequent pass covers. The pass over all sessions processes the rest.
RECENT = timedelta(minutes=10)
#: Number of sessions per query, and seconds after which a pass ends.
SESSIONS, PASS_SECONDS = 50, 20.0
LEASE = timedelta(seconds=60)
#: Time until the indexing of a session is retried after a failure.
PAUSE_AFTER_FAILURE = timedelta(minutes=10)
#: Maximum number of files stored with a segment.
_MOST_FILES = 60

#: The keys are thousands of numbers: as text, they take a fraction of the time.
_INSERT: LiteralString = """
INSERT INTO agent_sessions_searchsegment (project_id, session_id, first, "end", ended_at, header, keys, files)
VALUES (%(project)s, %(session)s, %(first)s, %(end)s, %(ended_at)s, %(header)b, %(keys)s::text::int[],
        %(files)s::text[])
RETURNING id
"""


def search_index_run(*, everywhere: bool = False) -> int:
    """Index the new messages of sessions for a few seconds at most. Return the number of messages.

    Checks the recently active sessions, or all with `everywhere`.
    """
    count, until = 0, time.monotonic() + PASS_SECONDS
    while time.monotonic() < until:
        pending = _pending(everywhere)
        if not pending:
            break
        count += sum(map(_index_safely, pending))
    return count


def search_index_on_commit(*, session_id: UUID) -> None:
    """Request indexing of a session after the commit, because an import has written to it."""
    transaction.on_commit(partial(search_index_dispatch, session_id), robust=True)


def search_index_truncate(*, session_id: UUID, position: int) -> None:
    """Remove the messages from `position` on from the index, because they are replaced."""
    removed = SearchSegment.objects.filter(session_id=session_id, end__gt=position)
    first = removed.order_by("first").values_list("first", flat=True).first()
    if first is not None:
        removed.only("pk").delete()
        revoke(SearchState.objects.filter(pk=session_id), position=first)


def search_index_rebuild(*, session_id: UUID) -> int:
    """Index a session from its first message on. Return the number of messages."""
    with transaction.atomic():
        SearchSegment.objects.filter(session_id=session_id).only("pk").delete()
        revoke(SearchState.objects.filter(pk=session_id), position=0)
    return session_index(session_id=session_id)


def session_index(*, session_id: UUID) -> int:
    """Index the new messages of a session. Return their number, or 0 if another worker is indexing it."""
    if not AgentSession.objects.filter(pk=session_id).exists():
        return 0
    SearchState.objects.bulk_create([SearchState(session_id=session_id)], ignore_conflicts=True)
    row = claim(SearchState.objects.filter(pk=session_id), lease=LEASE)
    if row is None:
        return 0
    begin = row.position
    while (batch := messages_to_index(session_id=session_id, position=row.position)) is not None:
        if not _store(row, batch):
            return row.position - begin
        row.position = batch.end
        if batch.is_last:
            break
    release(still_own(row))
    return row.position - begin


def _pending(everywhere: bool) -> list[UUID]:
    begun = is_free("search_state__") & Q(search_state__position__lt=F("message_count"))
    rows = AgentSession.objects.filter(Q(search_state=None, message_count__gt=0) | begun)
    if not everywhere:
        rows = rows.filter(pk__in=sessions_active_since(timezone.now() - RECENT))
    return list(rows.order_by(F("last_active_at").desc()).values_list("pk", flat=True)[:SESSIONS])


def _index_safely(session_id: UUID) -> int:
    try:
        return session_index(session_id=session_id)
    except Exception:
        # A session that cannot be indexed must not block the others.
        log.exception("could not index session %s for the search", session_id)
        release(SearchState.objects.filter(pk=session_id), pause=PAUSE_AFTER_FAILURE)
        return 0


@transaction.atomic
def _store(row: SearchState, batch: IndexedMessages) -> bool:
    """Store a batch and merge it with the segments before it. Return False if the claim was lost."""
    if still_own(row).select_for_update().first() is None:
        return False
    merged = _segments_to_merge(row.session_id, batch)
    parts = [(Header.unpack(bytes(each.header)), _blocks(each)) for each in merged]
    new = segment_build(batch.documents, after=parts)
    files = [*_files(batch.messages), *(name for each in reversed(merged) for name in each.files)]
    if merged:
        SearchSegment.objects.filter(pk__in=[each.pk for each in merged]).delete()
    first = merged[0].first if merged else batch.first
    _insert(batch, new, first, files)
    return release(still_own(row), pause=LEASE, position=batch.end)


def _segments_to_merge(session_id: UUID, batch: IndexedMessages) -> list[SearchSegment]:
    """Return the segments before the batch to merge it with, in order."""
    found: list[SearchSegment] = []
    size = len(batch.documents)
    before = SearchSegment.objects.filter(session_id=session_id, end__lte=batch.first).order_by("-first")
    for segment in before.defer("keys")[:8]:
        length = segment.end - segment.first
        if length > 2 * size or size + length > MOST_MESSAGES:
            break
        found.insert(0, segment)
        size += length
    return found


def _files(messages: Sequence[Message]) -> list[str]:
    """Return the files that the messages' tool calls touch, the most frequent first."""
    counted: Counter[str] = Counter()
    for message in messages:
        counted += touched_files(message)
    return [name for name, _ in counted.most_common()]


def _blocks(segment: SearchSegment) -> list[bytes]:
    return [bytes(data) for data in segment.blocks.order_by("first_term").values_list("data", flat=True)]


def _insert(batch: IndexedMessages, new: Segment, first: int, files: Sequence[str]) -> None:
    keys = segment_keys(project_salt(batch.project_id), new)
    parameters = {
        "project": batch.project_id,
        "session": batch.session_id,
        "first": first,
        "end": batch.end,
        "ended_at": _time_of(batch),
        "header": new.header.pack(),
        "keys": f"{{{','.join(map(str, keys))}}}",
        "files": list(dict.fromkeys(files))[:_MOST_FILES],
    }
    with connection.wrap_database_errors:
        [id] = execute(raw_connection(), _INSERT, parameters).fetchone() or [None]
    rows = [{"segment_id": id, "first_term": term, "data": data} for term, data in new.blocks]
    rows_copy(SearchBlock._meta.db_table, rows)


def _time_of(batch: IndexedMessages) -> datetime:
    turns = Turn.objects.filter(session_id=batch.session_id, index=batch.last_turn)
    return turns.values_list("at", flat=True).first() or timezone.now()
