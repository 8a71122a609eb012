"""Automatic memory updates: a worker reads the new turns of a session and keeps its memory current.

`MemoryUpdateState` stores the next turn to read, so a task that is lost or runs twice does no harm, and the
work for a turn does not grow with the session. Nothing is computed while the session is locked.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from compaction.adapters.tiktoken_counter import counter
from compaction.memory.origins import Author, Notes, Via
from compaction.memory.updates import Update, UpdaterState, update_notes
from sessions.models import AgentSession
from sessions.selectors.memory.revisions import memory_latest, memory_notes
from sessions.selectors.transcripts.turns import messages_by_turn
from sessions.services.dispatch import MEMORY_UPDATE, task_dispatch
from sessions.services.memory.revisions import MemoryTooLarge, Writer, revision_create
from sessions.services.memory.update_state import update_state_load, update_state_store, update_state_turn

log = logging.getLogger(__name__)

#: Maximum number of turns that are read at a time and written in one transaction.
TURNS_AT_ONCE = 50

#: Maximum number of attempts at one step while other writers change the memory.
_ATTEMPTS = 5

#: The sweep covers sessions that were active in this period. Others were updated or never will be.
_SWEEP_PERIOD = timedelta(hours=1)
_SWEEP_SESSIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """The update for some turns, not yet written, and the revision on which it is based."""

    base_revision: int
    first: int
    end: int
    updates: Sequence[tuple[int, Update]]
    state: UpdaterState


def memory_update(*, session_id: UUID, forced: bool = False) -> int:
    """Read all new turns of a session. Returns their number. `forced` ignores the project's setting."""
    session = AgentSession.objects.select_related("project").filter(pk=session_id).first()
    if session is None or not (forced or session.project.memory_upkeep):
        return 0
    first = end = update_state_turn(session)
    while end < session.turn_count:
        end = _update_next(session)
    return end - first


def memory_updates_sweep() -> int:
    """Dispatch updates of sessions with unread turns. Returns their number."""
    rows = AgentSession.objects.filter(
        Q(memory_update_state=None) | Q(memory_update_state__turn__lt=F("turn_count")),
        project__memory_upkeep=True,
        turn_count__gt=0,
        last_active_at__gte=timezone.now() - _SWEEP_PERIOD,
    )
    ids = rows.order_by("-last_active_at").values_list("pk", flat=True)[:_SWEEP_SESSIONS]
    return sum(task_dispatch(MEMORY_UPDATE, session_id) for session_id in ids)


def _update_next(session: AgentSession) -> int:
    """Read some turns and write the result. Returns the next turn to read."""
    for _ in range(_ATTEMPTS):
        step = _read(session)
        if _write(session, step):
            return step.end
    log.warning("memory update of %s is left to the next sweep: too many concurrent writes", session.pk)
    return session.turn_count


def _read(session: AgentSession) -> _Step:
    first, state = update_state_load(session)
    latest = memory_latest(session_id=session.pk)
    notes, updates = memory_notes(latest), []
    # Another worker may have read turns that followed when the session was loaded.
    end = max(first, min(first + TURNS_AT_ONCE, session.turn_count))
    for turn, messages in messages_by_turn(session, first, end):
        updated = update_notes(notes, state, messages, counter=counter())
        notes, state = updated.notes, updated.state
        if updated.reason:
            updates.append((turn, updated))
    return _Step(
        base_revision=latest.number if latest is not None else 0,
        first=first,
        end=end,
        updates=updates,
        state=state,
    )


@transaction.atomic
def _write(session: AgentSession, step: _Step) -> bool:
    """Store a step. Returns False if another writer has changed the memory or read these turns."""
    locked = AgentSession.objects.select_for_update().filter(pk=session.pk).first()
    if locked is None:
        return True
    latest = memory_latest(session_id=locked.pk)
    current = latest.number if latest is not None else 0
    if current != step.base_revision or update_state_turn(locked) != step.first:
        return False
    for turn, updated in step.updates:
        current += _store_revision(locked, current + 1, turn, updated.notes, updated.reason)
    update_state_store(locked, step.end, step.state)
    return True


def _store_revision(session: AgentSession, number: int, turn: int, notes: Notes, reason: str) -> int:
    """Store one revision. Returns the number of revisions stored, 0 or 1."""
    writer = Writer(author=Author.HARNESS, via=Via.AUTO_UPDATE, reason=reason)
    try:
        revision_create(session=session, number=number, notes=notes, turn=turn, writer=writer)
    except MemoryTooLarge:
        return 0  # items of other writers fill the memory, so that not even stale marks fit
    return 1
