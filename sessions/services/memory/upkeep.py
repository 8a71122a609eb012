"""Upkeep in the background: reads the turns that are new in a session and keeps its memory current.

What was read stands in `MemoryWatch`, so a task that is lost or comes twice does no harm, and the work of a
turn does not grow with the session. Nothing is computed while the session is locked.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from compaction.adapters.tiktoken_counter import counter
from compaction.memory import Author, Notes, Via
from compaction.memory.updates import Update, UpdaterState, update_notes
from compaction.messages import Message as MessageValue
from sessions.models import AgentSession
from sessions.selectors.memory import memory_latest, memory_notes
from sessions.services.dispatch import upkeep_dispatch
from sessions.services.memory.turns import turns_messages
from sessions.services.memory.watches import watch_load, watch_store, watch_turn
from sessions.services.memory.writing import MemoryTooLarge, Writer, revision_create

log = logging.getLogger(__name__)

#: Turns that are read, and written in one transaction, at a time.
TURNS_AT_ONCE = 50

#: How often a step is tried again when others write to the memory meanwhile.
_TRIES = 5

#: A session that has been idle for longer has been caught up with, or never will be by itself.
_SWEPT = timedelta(hours=1)
_SWEPT_SESSIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A step before it is written: the revision it stands on, and what each turn made of it."""

    number: int
    first: int
    end: int
    made: Sequence[tuple[int, Update]]
    watch: UpdaterState


def upkeep_run(*, session_id: UUID, asked: bool = False) -> int:
    """Reads every turn that is new; how many. `asked`: somebody wants it though the project has it off."""
    session = AgentSession.objects.select_related("project").filter(pk=session_id).first()
    if session is None or not (asked or session.project.memory_upkeep):
        return 0
    first = end = watch_turn(session)
    while end < session.turn_count:
        end = _step(session)
    return end - first


def upkeep_sweep() -> int:
    """Sends again for sessions whose last turns nobody has read; how many."""
    rows = AgentSession.objects.filter(
        Q(memory_watch=None) | Q(memory_watch__turn__lt=F("turn_count")),
        project__memory_upkeep=True,
        turn_count__gt=0,
        last_active_at__gte=timezone.now() - _SWEPT,
    )
    ids = rows.order_by("-last_active_at").values_list("pk", flat=True)[:_SWEPT_SESSIONS]
    return sum(upkeep_dispatch(session_id) for session_id in ids)


def _step(session: AgentSession) -> int:
    """Reads some turns and writes what they made of the memory; the next turn to read."""
    for _ in range(_TRIES):
        read = _read(session)
        if _write(session, read):
            return read.end
    log.warning("upkeep of %s waits for the sweep: others write all the time", session.pk)
    return session.turn_count


def _read(session: AgentSession) -> _Read:
    first, watch = watch_load(session)
    latest = memory_latest(session_id=session.pk)
    notes, made = memory_notes(latest), []
    for turn, messages in _turns(session, first):
        kept = update_notes(notes, watch, messages, counter=counter())
        notes, watch = kept.notes, kept.watch
        if kept.reason:
            made.append((turn, kept))
    return _Read(
        number=latest.number if latest is not None else 0,
        first=first,
        end=min(first + TURNS_AT_ONCE, session.turn_count),
        made=made,
        watch=watch,
    )


def _turns(session: AgentSession, first: int) -> Iterator[tuple[int, list[MessageValue]]]:
    """The messages of the next turns, turn by turn."""
    messages = turns_messages(session, first, min(first + TURNS_AT_ONCE, session.turn_count))
    for turn, group in groupby(messages, key=lambda message: message.turn):
        yield turn, list(group)


@transaction.atomic
def _write(session: AgentSession, read: _Read) -> bool:
    """Stores a step; False where somebody wrote to the memory, or read these turns, since."""
    locked = AgentSession.objects.select_for_update().filter(pk=session.pk).first()
    if locked is None:
        return True
    latest = memory_latest(session_id=locked.pk)
    current = latest.number if latest is not None else 0
    if current != read.number or watch_turn(locked) != read.first:
        return False
    for turn, kept in read.made:
        current += _stored(locked, current + 1, turn, kept.notes, kept.reason)
    watch_store(locked, read.end, read.watch)
    return True


def _stored(session: AgentSession, number: int, turn: int, notes: Notes, reason: str) -> int:
    writer = Writer(author=Author.HARNESS, via=Via.UPKEEP, reason=reason)
    try:
        revision_create(session=session, number=number, notes=notes, turn=turn, writer=writer)
    except MemoryTooLarge:
        return 0  # others' items fill it: there is no room to say even what is stale
    return 1
