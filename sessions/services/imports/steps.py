"""Import one step of a log: the next turns of a session.

A new session grows by one step at a time, like a session whose log is imported again whenever it has grown. A
session that exists already is compared with the log as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from django.db import transaction

from accounts.models import Project
from compaction.errors import FormatError
from importers.base import ImportedSession
from redaction import Redaction
from sessions.models import AgentSession, ImportJob, ImportJobSession, ImportStep
from sessions.services.commits import after_commit
from sessions.services.dispatch import MEMORY_UPDATE, task_dispatch
from sessions.services.imports.find import ImportConflictError
from sessions.services.imports.preambles import preambles_append
from sessions.services.imports.prepare import session_prepare, turns_prepare
from sessions.services.imports.reader import malformed
from sessions.services.imports.reported import calls_take
from sessions.services.imports.rows import billed_elsewhere, turns_place, turns_write
from sessions.services.imports.store import prepared_import
from sessions.services.imports.tally import Tally
from sessions.services.imports.unnamed import calls_identify
from sessions.services.imports.uploads import session_read, step_read
from sessions.services.search.indexing import search_index_on_commit
from sessions.services.sessions.derived import derived_refresh_on_commit
from sessions.services.sessions.lifecycle import session_delete
from sessions.store.text import storable

State = ImportJobSession.State

#: Maximum number of unreadable lines that a job lists. All of them are counted.
MAX_DAMAGES = 100


@dataclass(frozen=True, kw_only=True)
class Importing:
    """A job in progress. `lock` locks its row, or raises if the worker has lost the claim."""

    project: Project
    redaction: Redaction
    lock: Callable[[], ImportJob]


def step_next(job: ImportJob) -> ImportStep | None:
    """Return the next step of a job, None if all are imported."""
    first = job.steps.only("ordinal", "first_turn").order_by("ordinal", "first_turn").first()
    if first is None:
        return None
    done = job.sessions.filter(ordinal=first.ordinal).values_list("log_turns", flat=True).first() or 0
    return job.steps.get(ordinal=first.ordinal, first_turn=done)


def step_import(importing: Importing, step: ImportStep) -> None:
    """Import the turns of a step and record the progress in the same transaction."""
    begun = ImportJobSession.objects.filter(job=step.job_id, ordinal=step.ordinal).first()
    row, part = begun or ImportJobSession(ordinal=step.ordinal), step_read(step)
    try:
        if begun is not None and _append(importing, step, row, part):
            return
        if begun is None and (step.is_last or not _exists(importing, part)):
            _import(importing, step, row, part)
        else:
            _import(importing, step, row, session_read(step), is_whole=True)
    except FormatError as error:
        _skip(importing, step, row, error)


def _exists(importing: Importing, part: ImportedSession) -> bool:
    known = AgentSession.objects.filter(project=importing.project, external_id=part.external_id)
    return known.exists()


def _import(
    importing: Importing,
    step: ImportStep,
    row: ImportJobSession,
    imported: ImportedSession,
    *,
    is_whole: bool = False,
) -> None:
    """Import the beginning of a session, or all of it."""
    prepared = session_prepare(imported, redaction=importing.redaction)
    with transaction.atomic():
        job = importing.lock()
        row.job, row.external_id = job, prepared.facts.external_id
        try:
            result = prepared_import(project=importing.project, prepared=prepared, origin=job.format)
        except ImportConflictError as error:
            row.state, row.reason = State.CONFLICT, str(error)
            _save(job, row, imported, is_last=True)
            return
        if not (result.created or is_whole or step.is_last):
            # The session was recorded under another name, and is compared with the log as a whole.
            _import(importing, step, row, session_read(step), is_whole=True)
            return
        is_new = result.created or row.state == State.PARTIAL
        if result.created:
            row.turns = row.messages = 0  # those of a session that was deleted during the import
        row.session = result.session
        row.state = State.NEW if is_new else State.GROWN if result.changed else State.UNCHANGED
        row.redacted = dict(result.redacted)
        row.turns += result.turns_added
        row.messages += result.messages_added
        if result.changed and importing.project.memory_upkeep:
            after_commit(task_dispatch, MEMORY_UPDATE, result.session.pk)
        _save(job, row, imported, is_last=is_whole or step.is_last)


def _append(importing: Importing, step: ImportStep, row: ImportJobSession, part: ImportedSession) -> bool:
    """Append the turns of a step. Returns False if the session was changed since the last step."""
    turns, redacted = turns_prepare(part, redaction=importing.redaction)
    with transaction.atomic():
        job = importing.lock()
        session = AgentSession.objects.select_for_update().filter(pk__in=[row.session_id]).first()
        if session is None or session.turn_count != step.first_turn or session.compaction_count:
            return False
        before = session.message_count
        turns = calls_take(session, calls_identify(session.project_id, turns)[0])
        placed, tally = turns_place(session, turns, Tally.of(session), billed_elsewhere(session, turns))
        preambles_append(session, turns)
        turns_write(session, placed)
        tally.apply_to(session)
        session.snapshot_end = session.context_start
        session.save()
        row.state = State.NEW
        row.turns += len(turns)
        row.messages += session.message_count - before
        row.redacted = dict(Counter(row.redacted) + Counter(redacted))
        _save(job, row, part, is_last=step.is_last, is_next=True)
        if step.is_last:
            search_index_on_commit(session_id=session.pk)
            derived_refresh_on_commit(session=session)
    return True


def _skip(importing: Importing, step: ImportStep, row: ImportJobSession, error: FormatError) -> None:
    """Report a session with an invalid message, and delete what was imported of it."""
    whole = session_read(step)
    with transaction.atomic():
        job = importing.lock()
        if row.session is not None:
            session_delete(session=row.session)
        row.job, row.session, row.state = job, None, State.SKIPPED
        row.external_id = storable(whole.external_id[:200])
        damage = malformed(job.name, whole, error)
        job.damage_count += 1
        if len(job.damages) < MAX_DAMAGES:
            job.damages.append({"line": damage.line, "reason": storable(damage.reason)})
        _save(job, row, whole, is_last=True)


def _save(
    job: ImportJob, row: ImportJobSession, imported: ImportedSession, *, is_last: bool, is_next: bool = False
) -> None:
    """Save the row and the progress of the job, which is locked.

    `imported` are all turns of the log so far, or with `is_next` those of the last step. The steps of a
    session are deleted after the last one.
    """
    turns, messages, before = len(imported.turns), imported.message_count, row.log_messages
    row.log_turns = row.log_turns + turns if is_next else turns
    row.log_messages = before + messages if is_next else messages
    if row.state == State.NEW and not is_last:
        row.state = State.PARTIAL
    row.save()
    if is_last:
        ImportStep.objects.filter(job=job, ordinal=row.ordinal).delete()
    job.messages_done += row.log_messages - before
    job.sessions_done += is_last
    job.stalls = 0
    job.save(update_fields=["sessions_done", "messages_done", "stalls", "damages", "damage_count"])
