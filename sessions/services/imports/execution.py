"""Execute import jobs in slices of a few seconds.

Each task executes one slice and dispatches the next, so that a long import does not delay compactions and a
cancelled one stops soon. The first slice reads the log and divides it into steps. A step and its progress are
stored together, so an import whose worker was killed continues where it stopped.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.db import OperationalError, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from importers.base import LogFile
from importers.registry import IMPORTERS
from importers.unrecognized import UNSUPPORTED, unrecognized_reason
from sessions.models import ImportJob, ImportJobSession
from sessions.selectors.redaction import redaction_of
from sessions.services.claims import claim, release, renewed, still_own
from sessions.services.dispatch import IMPORT_STEP, task_dispatch
from sessions.services.imports.logs import log_remember
from sessions.services.imports.prepare import context_window_of, too_deep
from sessions.services.imports.reader import RawLog, Reader, malformed
from sessions.services.imports.steps import MAX_DAMAGES, Importing, step_import, step_next
from sessions.services.imports.uploads import steps_store, upload_delete, upload_read
from sessions.store.text import storable

log = logging.getLogger(__name__)

#: Seconds after which a task leaves the rest to the next task.
SLICE_SECONDS = 5.0

#: Attempts without progress after which a job fails.
MAX_STALLS = 4

_LEASE = timedelta(seconds=30)

#: Jobs with a later lease can be claimed (see `is_free`).
LONGEST_LEASE = 2 * _LEASE


class ClaimLost(Exception):
    """The job was cancelled, or another worker has claimed it."""


def import_step(*, job_id: UUID, seconds: float = SLICE_SECONDS) -> bool:
    """Execute one slice of a job and dispatch the next. Returns whether the job has ended.

    Does nothing if the job is claimed by another worker or has ended.
    """
    jobs = ImportJob.objects.select_related("project").filter(pk=job_id, state__in=ImportJob.OPEN)
    job = claim(jobs, lease=_LEASE, longest=LONGEST_LEASE, state=ImportJob.State.RUNNING)
    if job is None:
        return False
    _still_own(job).update(stalls=F("stalls") + 1)
    try:
        with renewed(_still_own(job), lease=_LEASE):
            is_finished = _run_slice(job, seconds)
    except ClaimLost:
        return False
    except OperationalError:
        raise  # the lease ends soon, and the sweep dispatches the job again
    except Exception as error:
        log.exception("import %s", job.pk)
        _end(job, "internal_error", f"{type(error).__name__}: {error}")
        return True
    if not is_finished and release(_still_own(job)):
        task_dispatch(IMPORT_STEP, job.pk)
    return is_finished


def _run_slice(job: ImportJob, seconds: float) -> bool:
    """Work on the job for one slice. Returns whether the job has ended."""
    until = time.monotonic() + seconds
    if job.stalls >= MAX_STALLS:
        _end(job, "import_stalled", f"The worker ended {MAX_STALLS} times without progress.")
        return True
    if job.digest is None:
        if not _read(job):
            return True
        if time.monotonic() > until:
            return False
    importing = Importing(project=job.project, redaction=redaction_of(job.project), lock=partial(_lock, job))
    while (step := step_next(job)) is not None:
        step_import(importing, step)
        if time.monotonic() > until:
            break
    if step is not None and job.steps.exists():
        return False
    _finish(job)
    return True


def _read(job: ImportJob) -> bool:
    """Read the log and divide it into steps. Returns False if the format is unknown, which ends the job."""
    found = _parse(job)
    if found is None:
        return False
    raw, digest = found
    sessions = [
        replace(each, context_window=each.context_window or context_window_of(each.model, each.turns))
        for each in raw.sessions
    ]
    with transaction.atomic():
        locked = _lock(job)
        refused = steps_store(locked, sessions)
        damages = [*raw.damages, *(malformed(job.name, each, too_deep()) for each in refused)]
        locked.format, locked.digest, locked.stalls = raw.importer, digest, 0
        locked.sessions_total = len(sessions) - len(refused)
        locked.messages_total = sum(each.message_count for each in sessions)
        locked.messages_total -= sum(each.message_count for each in refused)
        locked.damages = [{"line": each.line, "reason": each.reason} for each in damages[:MAX_DAMAGES]]
        locked.damage_count = len(damages)
        locked.save()
    job.digest = locked.digest
    return True


def _parse(job: ImportJob) -> tuple[RawLog, bytes] | None:
    """Return the content of the log and its digest, or None after ending the job.

    The bytes of the log are freed before its sessions are stored.
    """
    reader = Reader(redaction=redaction_of(job.project), format=job.requested_format or None)
    file = LogFile(name=job.name, data=upload_read(job))
    raw = reader.read_raw(file)
    if raw is None:
        _end(job, "unknown_format", _unknown(file))
        return None
    return raw, reader.digest(file)


def _unknown(file: LogFile) -> str:
    """Return the error for a file that no importer recognizes."""
    reason = unrecognized_reason(file)
    return f"{reason} Supported: {', '.join(IMPORTERS)}." if reason == UNSUPPORTED else reason


def _finish(job: ImportJob) -> None:
    """End the job. Remember the log if it was read without damage and stored without conflict."""
    job.refresh_from_db()
    rows = list(job.sessions.order_by("ordinal").only("state", "reason", "session"))
    conflicts = [row.reason for row in rows if row.state == ImportJobSession.State.CONFLICT]
    if rows and len(conflicts) == len(rows):
        _end(job, "import_conflict", conflicts[0])
        return
    stored = [row.session_id for row in rows if row.session_id is not None]
    if stored and len(stored) == len(rows) and not job.damage_count:
        log_remember(bytes(job.digest or b""), stored)
    _end(job)


def _end(job: ImportJob, code: str = "", error: str = "") -> None:
    state = ImportJob.State.FAILED if code else ImportJob.State.DONE
    text = storable(error[:500])
    if release(_still_own(job), state=state, error_code=code, error=text, finished_at=Now()):
        upload_delete(job)


# -- The claim ----------------------------------------------------------------------------------


def _still_own(job: ImportJob) -> QuerySet[ImportJob]:
    """Select the job, unless it was cancelled or another worker has claimed it."""
    return still_own(job).filter(state=ImportJob.State.RUNNING)


def _lock(job: ImportJob) -> ImportJob:
    """Lock the job's row. Raises `ClaimLost`."""
    found = _still_own(job).select_for_update().first()
    if found is None:
        raise ClaimLost
    return found
