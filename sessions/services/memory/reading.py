"""Extraction in the background: where a project names a model, it reads what upkeep has gone through.

Not every turn by itself: the model is asked when enough is new, or when the session has come to rest. It is
asked outside of any transaction, and its suggestions come into whatever the memory holds by then.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

import pricing
from accounts.models import Project
from compaction.adapters.tiktoken_counter import counter
from compaction.errors import SummaryError, SummaryMalformed, SummaryRefused, SummaryTooLong
from compaction.memory import Author, Notes, Schema, Via
from compaction.memory.extraction import (
    MAX_INPUT_TOKENS,
    TURNS_AT_ONCE,
    Applied,
    Extraction,
    Suggestion,
    apply,
    taken_out,
    turns_to_extract,
)
from compaction.memory.updates import UpdaterState
from compaction.messages import Message as MessageValue
from compaction.messages import usage_sum
from compaction.recap.model_input import split_by_tokens
from compaction.structured_output import Reply, answer_of
from redaction import redact
from sessions.models import (
    AgentSession,
    MemoryReader,
    MemoryReading,
    MemoryRevision,
)
from sessions.selectors.memory import memory_latest, memory_notes, memory_schema
from sessions.selectors.redaction import redaction_for
from sessions.selectors.summarizers import reader, reader_missing
from sessions.services.dispatch import upkeep_dispatch
from sessions.services.memory.turns import turns_messages, turns_tokens
from sessions.services.memory.watches import watch_load, watch_store, watch_turn
from sessions.services.memory.writing import Writer, revision_create
from sessions.store import bodies

if TYPE_CHECKING:
    from compaction.adapters.claude import Exchange

log = logging.getLogger(__name__)

#: Tries after which turns are given up whose answers were paid for and of no use.
_TRIES = 3

#: The longest pause between two tries.
_LONGEST_PAUSE = timedelta(hours=1)

#: Items taken out that are kept in mind, and revisions that are looked at for them.
_DISMISSED, _REVISIONS = 100, 200

#: A session that has rested for longer is left as it is.
_OF_USE = timedelta(days=1)
_SWEPT_SESSIONS = 200

_PAID_IN_VAIN = (SummaryMalformed, SummaryTooLong)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Turns that are ours to read, from `first` up to but without `end`, and the memory as it is."""

    session: AgentSession
    attempt: int
    first: int
    end: int
    messages: Sequence[MessageValue]
    notes: Notes
    watch: UpdaterState
    schema: Schema
    dismissed: Sequence[str]


def reading_run(*, session_id: UUID) -> bool:
    """Has the model read the turns that are due, and sends for more of them; whether any were read.

    One reading a task: a long session must not hold a worker for minutes that others wait for.
    """
    job = _claimed(session_id)
    if job is None or not _read(job):
        return False
    if _due(job.session, job.end) is not None:
        upkeep_dispatch(session_id)
    return True


def readings_sweep() -> int:
    """Sends for sessions that have come to rest with something unread; how many."""
    projects = Project.objects.filter(memory_upkeep=True).exclude(memory_model="")
    reading = [project.pk for project in projects if not reader_missing(project)]
    now = timezone.now()
    rows = AgentSession.objects.filter(
        Q(memory_reader=None) | Q(memory_reader__turn__lt=F("memory_watch__turn")),
        Q(memory_reader__free_at=None) | Q(memory_reader__free_at__lte=now),
        project__in=reading,
        turn_count__gt=0,
        last_active_at__range=(now - _OF_USE, _rested_before(now)),
    )
    ids = rows.order_by("-last_active_at").values_list("pk", flat=True)[:_SWEPT_SESSIONS] if reading else ()
    return sum(upkeep_dispatch(session_id) for session_id in ids)


def _rested_before(now: datetime) -> datetime:
    return now - timedelta(seconds=settings.CONTEXTAPP_MEMORY_REST_SECONDS)


# -- Claiming -----------------------------------------------------------------------------------------------


def _claimed(session_id: UUID) -> Job | None:
    """The next turns, now ours; None where nothing is due, or somebody else has them."""
    session = AgentSession.objects.select_related("project").filter(pk=session_id).first()
    if session is None or reader_missing(session.project):
        return None
    row, _ = MemoryReader.objects.get_or_create(session=session)
    end = _due(session, row.turn)
    if end is None:
        return None
    free = Q(free_at=None) | Q(free_at__lte=Now())
    mine = MemoryReader.objects.filter(free, session=session, turn=row.turn, attempts=row.attempts)
    attempt = row.attempts + 1
    if mine.update(attempts=attempt, free_at=Now() + _pause(attempt), told="") != 1:
        return None
    return _job(session, row, attempt, end)


def _due(session: AgentSession, first: int) -> int | None:
    """Where the turns end that the model is to read now; None where there are too few of them yet."""
    last = min(watch_turn(session), first + TURNS_AT_ONCE)  # what tools show comes first
    tokens = turns_tokens(session, first, last)
    rests = session.last_active_at <= _rested_before(timezone.now())
    count = turns_to_extract([tokens.get(turn, 0) for turn in range(first, last)], rests=rests)
    return first + count if count else None


def _pause(attempt: int) -> timedelta:
    """How long a claim keeps others off: longer than a reading may take, and longer with each that failed."""
    lease = settings.CONTEXTAPP_SUMMARIZER_TOTAL_TIMEOUT + settings.CONTEXTAPP_LEASE_SECONDS
    cooldown = settings.CONTEXTAPP_COOLDOWN_SECONDS * 2 ** min(attempt - 1, 10)
    return max(timedelta(seconds=lease), min(timedelta(seconds=cooldown), _LONGEST_PAUSE))


def _job(session: AgentSession, row: MemoryReader, attempt: int, end: int) -> Job:
    latest = memory_latest(session_id=session.pk)
    return Job(
        session=session,
        attempt=attempt,
        first=row.turn,
        end=end,
        messages=list(turns_messages(session, row.turn, end)),
        notes=memory_notes(latest),
        watch=watch_load(session)[1],
        schema=memory_schema(project_id=session.project_id),
        dismissed=_dismissed(row, latest),
    )


def _dismissed(row: MemoryReader, latest: MemoryRevision | None) -> tuple[str, ...]:
    """The items that somebody took out of the memory, oldest first."""
    known = bodies.json_value(bodies.unpack(row.dismissed)) if row.dismissed else []
    since = MemoryRevision.objects.filter(session=row.session_id, number__gte=row.revision)
    revisions = [memory_notes(one) for one in since.order_by("-number")[:_REVISIONS]] if latest else []
    return (*known, *taken_out(revisions[::-1]))[-_DISMISSED:]


# -- Asking -------------------------------------------------------------------------------------------------


def _read(job: Job) -> bool:
    """Asks, and writes what comes of it. False where it did not get through."""
    exchange = reader(job.session.project.memory_model).begin()
    try:
        return _written(job, exchange, _suggestions(job, exchange))
    except SummaryError as error:
        log.warning("turns of %s were not read: %s", job.session.pk, error, exc_info=error.__cause__)
        return _failed(job, exchange, error)
    except Exception:
        # What an exception says may quote a secret or a statement: it goes to the log, and not on the record.
        log.exception("reading turns %s to %s of %s", job.first, job.end - 1, job.session.pk)
        return _ended(job, exchange, MemoryReading.State.FAILED, "a fault of the server; its log tells more")


def _suggestions(job: Job, exchange: Exchange) -> list[Suggestion]:
    """What the model suggests. Each piece is read over the memory as the one before would leave it."""
    notes, found = job.notes, list[Suggestion]()
    for piece in split_by_tokens(job.messages, MAX_INPUT_TOKENS, counter()):
        reading = Extraction(messages=piece, notes=notes, schema=job.schema, dismissed=job.dismissed)
        made = exchange.answer(
            reading.request,
            partial(_answered, job, reading),
            length_hint="Name fewer operations, in fewer words.",
        )
        notes = _applied(job, notes, made).notes
        found += made
    return found


def _answered(job: Job, reading: Extraction, reply: Reply) -> Sequence[Suggestion]:
    """What an answer suggests, once secrets are out of it."""
    clean, _ = redact(dict(answer_of(reply)), key=redaction_for(job.session.project_id))
    return reading.suggestions(clean)


def _applied(job: Job, notes: Notes, suggestions: Sequence[Suggestion]) -> Applied:
    return apply(notes, job.watch, suggestions, schema=job.schema, dismissed=job.dismissed, counter=counter())


# -- Writing ------------------------------------------------------------------------------------------------


@transaction.atomic
def _written(job: Job, exchange: Exchange, suggestions: Sequence[Suggestion]) -> bool:
    """Takes the suggestions into the memory as it is by now, if the turns are still ours."""
    session = AgentSession.objects.select_for_update().filter(pk=job.session.pk).first()
    row = _mine(job)
    if session is None or row is None:
        return _ended(job, exchange, MemoryReading.State.SUPERSEDED, "another worker had taken over")
    latest = memory_latest(session_id=session.pk)
    number = latest.number if latest is not None else 0
    upkept, watch = watch_load(session)
    now = replace(job, watch=watch, dismissed=_dismissed(row, latest))
    made = _applied(now, memory_notes(latest), suggestions)
    if made.reason:
        number += 1
        reason = f"read turns {job.first} to {job.end - 1}: {made.reason}"
        writer = Writer(author=Author.MODEL, via=Via.READING, reason=reason)
        last = max(session.turn_count - 1, 0)
        revision_create(session=session, number=number, notes=made.notes, turn=last, writer=writer)
        watch_store(session, upkept, made.watch)
    row.dismissed, row.revision = bodies.pack(bodies.json_bytes(now.dismissed)), number
    row.save(update_fields=["dismissed", "revision"])
    return _ended(job, exchange, MemoryReading.State.DONE, made.reason, number if made.reason else None)


def _failed(job: Job, exchange: Exchange, error: SummaryError) -> bool:
    """Turns whose answers cost money and are of no use are given up in the end; others are tried again."""
    hopeless = isinstance(error, SummaryRefused) or (
        isinstance(error, _PAID_IN_VAIN) and job.attempt >= _TRIES
    )
    state = MemoryReading.State.GIVEN_UP if hopeless else MemoryReading.State.FAILED
    return _ended(job, exchange, state, str(error))


@transaction.atomic
def _ended(
    job: Job, exchange: Exchange, state: MemoryReading.State, reason: str, revision: int | None = None
) -> bool:
    """Notes what a reading took, and where the next one begins. Whether the next may begin at once."""
    session = AgentSession.objects.filter(pk=job.session.pk).first()
    if session is None:
        return False
    MemoryReading.objects.create(
        session=session,
        model=job.session.project.memory_model,
        first_turn=job.first,
        end_turn=job.end,
        state=state,
        reason=reason,
        revision=revision,
        requests=exchange.requests,
        cost_microusd=pricing.calls_cost(job.session.project.memory_model, exchange.calls),
        **asdict(usage_sum(exchange.calls)),
    )
    row = _mine(job)
    if row is None:
        return False
    if state == MemoryReading.State.FAILED:
        row.told = reason
    else:
        row.turn, row.attempts, row.free_at, row.read_at = job.end, 0, None, timezone.now()
        row.told = reason if state == MemoryReading.State.GIVEN_UP else ""
    row.save(update_fields=["turn", "attempts", "free_at", "read_at", "told"])
    return state != MemoryReading.State.FAILED


def _mine(job: Job) -> MemoryReader | None:
    """The reader's row under lock; None where its claim has run out and another worker has taken over."""
    rows = MemoryReader.objects.select_for_update()
    return rows.filter(session=job.session, turn=job.first, attempts=job.attempt).first()
