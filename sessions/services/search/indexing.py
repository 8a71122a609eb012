"""Index the messages of sessions for the search.

A worker indexes new messages; pushes do not. New messages become a small segment, which is merged with the
preceding segments of similar size, so that every message is merged only a few times.
"""

from __future__ import annotations

import math
import time
from datetime import timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from sessions.models import SearchSegment, SearchState
from sessions.selectors.search.documents import messages_to_index, segments_to_merge
from sessions.services.backlog import Backlog
from sessions.services.claims import release, revoke
from sessions.services.commits import after_commit
from sessions.services.dispatch import SEARCH_INDEX, task_dispatch
from sessions.services.search.segments import segment_store

#: Period that the frequent pass covers. The pass over all sessions processes the rest.
RECENT = timedelta(minutes=10)
#: Seconds after which a worker stops indexing a long session, so that other tasks can run.
SLICE_SECONDS = 5.0


class _Claimed(NamedTuple):
    """A claimed session, and the position of the next message to index."""

    session_id: UUID
    attempts: int
    position: int
    project_id: UUID
    format: str | None


_BACKLOG = Backlog(
    "search index",
    SearchState,
    initial={"position": "0"},
    claimed=_Claimed,
    result="r.session_id, r.attempts, r.position, s.project_id, s.format",
)


def search_index_run(*, everywhere: bool = False) -> int:
    """Index the new messages of sessions for a few seconds at most. Return the number of messages.

    Checks the recently active sessions, or all with `everywhere`.
    """
    index = partial(_index, seconds=SLICE_SECONDS)
    return _BACKLOG.run(index, recent=None if everywhere else RECENT)


def search_index_on_commit(*, session_id: UUID) -> None:
    """Request indexing of a session after the commit, because an import has written to it."""
    after_commit(task_dispatch, SEARCH_INDEX, session_id)


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


def session_index(*, session_id: UUID, seconds: float = math.inf) -> int:
    """Index the new messages of a session. Return their number, or 0 if another worker is indexing it.

    After `seconds`, the remaining messages are left to another task, which is requested.
    """
    claimed = _BACKLOG.claim_one(session_id)
    return 0 if claimed is None else _index(claimed, seconds=seconds)


def _index(claimed: _Claimed, *, seconds: float) -> int:
    """Index the new messages of a session like `session_index` and release it. Return their number."""
    session_id, position, until = claimed.session_id, claimed.position, time.monotonic() + seconds
    is_interrupted = False
    while batch := messages_to_index(session_id=session_id, format=claimed.format, position=position):
        merged = segments_to_merge(session_id=session_id, first=batch.first, size=len(batch.documents))
        if not segment_store(batch, merged, project_id=claimed.project_id, attempts=claimed.attempts):
            break
        position = batch.end
        if batch.is_last:
            return position - claimed.position
        if is_interrupted := time.monotonic() >= until:
            break
    release(SearchState.objects.filter(pk=session_id, attempts=claimed.attempts))
    if is_interrupted:
        task_dispatch(SEARCH_INDEX, session_id)
    return position - claimed.position
