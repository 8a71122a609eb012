"""Import a session of a log in steps of bounded length, so that a worker can stop between them.

A new session grows by `STEP_MESSAGES` messages per step, like a session whose log is imported again whenever
it has grown. A session that exists already is compared with the log as a whole, in one step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from django.db import transaction

from accounts.models import Project
from compaction.errors import FormatError
from importers.base import ImportedSession
from redaction import Redaction
from sessions.models import AgentSession, ImportJob, ImportJobSession
from sessions.services.dispatch import memory_update_dispatch
from sessions.services.imports.places import context_window_of, turns_place
from sessions.services.imports.prepare import session_prepare, turns_prepare
from sessions.services.imports.reader import malformed
from sessions.services.imports.reported import calls_take
from sessions.services.imports.rows import billed_elsewhere, turns_write
from sessions.services.imports.store import ImportConflictError, prepared_import
from sessions.services.imports.tally import Tally
from sessions.services.search.indexing import search_index_on_commit
from sessions.services.sessions.derived import derived_refresh_on_commit
from sessions.services.sessions.lifecycle import session_delete

State = ImportJobSession.State

#: Messages that one step prepares and stores; it takes a second or two.
STEP_MESSAGES = 2_000

#: Maximum number of unreadable lines that a job lists. All of them are counted.
MAX_DAMAGES = 100


@dataclass(frozen=True, kw_only=True)
class Target:
    """One session of a job's log. `lock` locks the job, or raises if the worker has lost it."""

    project: Project
    ordinal: int
    imported: ImportedSession
    redaction: Redaction
    lock: Callable[[], ImportJob]

    def row(self, job_id: object) -> ImportJobSession | None:
        """Return what the job has done with the session so far."""
        return ImportJobSession.objects.filter(job=job_id, ordinal=self.ordinal).first()


def session_step(target: Target, row: ImportJobSession | None) -> ImportJobSession:
    """Import the next turns of a session, or all of it, and record it in the same transaction."""
    imported = target.imported
    end = _step_end(imported, row.log_turns if row else 0)
    try:
        if row is not None and (stored := _append(target, row, end)) is not None:
            return stored
        is_whole = row is not None or end == len(imported.turns) or _exists(target)
        return _import(target, row, len(imported.turns) if is_whole else end)
    except FormatError as error:
        return _skip(target, row, error)


def _step_end(imported: ImportedSession, start: int) -> int:
    """Return the end of the step that begins at turn `start`."""
    count = 0
    for index in range(start, len(imported.turns)):
        count += len(imported.turns[index].messages)
        if count >= STEP_MESSAGES:
            return index + 1
    return len(imported.turns)


def _exists(target: Target) -> bool:
    known = AgentSession.objects.filter(project=target.project, external_id=target.imported.external_id)
    return known.exists()


def _import(target: Target, row: ImportJobSession | None, end: int) -> ImportJobSession:
    """Import the first `end` turns of the log."""
    imported = target.imported
    window = imported.context_window or context_window_of(imported.model, imported.turns)
    begun = replace(imported, turns=imported.turns[:end], context_window=window)
    prepared = session_prepare(begun, redaction=target.redaction)
    with transaction.atomic():
        job = target.lock()
        row = row or ImportJobSession(job=job, ordinal=target.ordinal)
        row.external_id = prepared.facts.external_id
        try:
            result = prepared_import(project=target.project, prepared=prepared, origin=job.format)
        except ImportConflictError as error:
            row.state, row.reason = State.CONFLICT, str(error)
            return _save(target, job, row, end)
        row.session = result.session
        is_new = result.created or row.state == State.PARTIAL
        row.state = State.NEW if is_new else State.GROWN if result.changed else State.UNCHANGED
        row.redacted = dict(result.redacted)
        row.turns += result.turns_added
        row.messages += result.messages_added
        if result.changed and target.project.memory_upkeep:
            transaction.on_commit(lambda: memory_update_dispatch(result.session.pk), robust=True)
        return _save(target, job, row, end)


def _append(target: Target, row: ImportJobSession, end: int) -> ImportJobSession | None:
    """Append the next turns. Returns None if another writer has changed the session since the last step."""
    part = replace(target.imported, turns=target.imported.turns[row.log_turns : end])
    turns, redacted = turns_prepare(part, redaction=target.redaction)
    with transaction.atomic():
        job = target.lock()
        session = AgentSession.objects.select_for_update().filter(pk=row.session_id).first()
        if session is None or session.turn_count != row.log_turns or session.compaction_count:
            return None
        before = session.message_count
        calls_take(session, turns)
        placed, tally = turns_place(session, turns, Tally.of(session), billed_elsewhere(session, turns))
        turns_write(session, placed)
        tally.apply_to(session)
        session.snapshot_end = session.context_start
        session.save()
        row.turns += len(turns)
        row.messages += session.message_count - before
        row.redacted = dict(Counter(row.redacted) + Counter(redacted))
        row.state = State.NEW
        saved = _save(target, job, row, end)
        if saved.state != State.PARTIAL:
            search_index_on_commit(session_id=session.pk)
            derived_refresh_on_commit(session=session)
        return saved


def _save(target: Target, job: ImportJob, row: ImportJobSession, end: int) -> ImportJobSession:
    """Save the row and the progress of the job, which is locked."""
    turns = target.imported.turns
    job.messages_done += sum(len(turn.messages) for turn in turns[row.log_turns : end])
    row.log_turns = end
    if end < len(turns) and row.state == State.NEW:
        row.state = State.PARTIAL
    else:
        job.sessions_done += 1
    row.save()
    job.stalls = 0
    job.save(update_fields=["sessions_done", "messages_done", "stalls", "damages", "damage_count"])
    return row


def _skip(target: Target, row: ImportJobSession | None, error: FormatError) -> ImportJobSession:
    """Report a session with an invalid message, and delete what was imported of it."""
    with transaction.atomic():
        job = target.lock()
        if row is not None and row.session is not None:
            session_delete(session=row.session)
        row = row or ImportJobSession(job=job, ordinal=target.ordinal)
        row.session, row.state = None, State.SKIPPED
        row.external_id = target.imported.external_id[:200].replace("\0", "\ufffd")
        damage = malformed(job.name, target.imported, error)
        job.damage_count += 1
        if len(job.damages) < MAX_DAMAGES:
            job.damages.append({"line": damage.line, "reason": damage.reason.replace("\0", "\ufffd")})
        return _save(target, job, row, len(target.imported.turns))
