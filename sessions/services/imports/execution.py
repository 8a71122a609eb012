"""Execute import jobs in slices of a few seconds.

Each task executes one slice and dispatches the next, so that a long import does not delay compactions and a
cancelled one stops soon. Each step is stored together with the job's progress, so an import whose worker was
killed continues where it stopped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import OperationalError
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from importers.base import LogFile
from importers.registry import IMPORTERS
from sessions.models import ImportedLog, ImportJob, ImportJobSession
from sessions.selectors.redaction import redaction_of
from sessions.services.claims import claim, release, renewed, still_own
from sessions.services.dispatch import import_dispatch
from sessions.services.imports.reader import RawLog, Reader
from sessions.services.imports.steps import MAX_DAMAGES, Target, session_step
from sessions.services.imports.uploads import upload_delete, upload_read

log = logging.getLogger(__name__)

#: Seconds after which a task leaves the rest to the next task. Each slice reads the log again, so a slice
#: lasts at least twice as long as that takes.
SLICE_SECONDS, SLICE_READS = 5.0, 2.0

#: Attempts without progress after which a job fails.
MAX_STALLS = 4

_LEASE = timedelta(seconds=30)


class ClaimLost(Exception):
    """The job was cancelled, or another worker has claimed it."""


@dataclass(frozen=True, kw_only=True)
class _Log:
    """The log of a job while a slice runs."""

    job: ImportJob
    reader: Reader
    digest: bytes
    raw: RawLog


def import_step(*, job_id: UUID, seconds: float = SLICE_SECONDS) -> bool:
    """Execute one slice of a job and dispatch the next. Returns whether the job has ended.

    Does nothing if the job is claimed by another worker or has ended.
    """
    jobs = ImportJob.objects.select_related("project").filter(pk=job_id, state__in=ImportJob.OPEN)
    job = claim(jobs, lease=_LEASE, state=ImportJob.State.RUNNING)
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
        import_dispatch(job.pk)
    return is_finished


def _run_slice(job: ImportJob, seconds: float) -> bool:
    """Work on the job for one slice. Returns whether the job has ended."""
    if job.stalls >= MAX_STALLS:
        _end(job, "import_stalled", f"The worker ended {MAX_STALLS} times without progress.")
        return True
    begun = time.monotonic()
    opened = _open(job)
    if opened is None:
        return True
    now = time.monotonic()
    until = now + max(seconds, SLICE_READS * (now - begun))
    done = dict(job.sessions.exclude(state=ImportJobSession.State.PARTIAL).values_list("ordinal", "pk"))
    for ordinal, imported in enumerate(opened.raw.sessions):
        if ordinal in done:
            continue
        target = Target(
            project=job.project,
            ordinal=ordinal,
            imported=imported,
            redaction=opened.reader.redaction,
            lock=_locker(job),
        )
        row = target.row(job.pk)
        while row is None or row.state == ImportJobSession.State.PARTIAL:
            row = session_step(target, row)
            if time.monotonic() > until and not _is_last(opened, row):
                return False
    _finish(opened)
    return True


def _is_last(opened: _Log, row: ImportJobSession) -> bool:
    is_done = row.state != ImportJobSession.State.PARTIAL
    return is_done and row.ordinal == len(opened.raw.sessions) - 1


def _open(job: ImportJob) -> _Log | None:
    """Read the log. Ends the job and returns None if its format is unknown."""
    data = upload_read(job)
    reader = Reader(redaction=redaction_of(job.project), format=job.requested_format or None)
    file = LogFile(name=job.name, data=data)
    raw = reader.read_raw(file)
    if raw is None:
        supported = ", ".join(IMPORTERS)
        _end(job, "unknown_format", f"The file is not in a supported format. Supported: {supported}.")
        return None
    if not job.sessions_total and not job.damage_count:
        listed = [{"line": d.line, "reason": d.reason} for d in raw.damages[:MAX_DAMAGES]]
        _change(
            job,
            format=raw.importer,
            sessions_total=len(raw.sessions),
            messages_total=sum(len(turn.messages) for each in raw.sessions for turn in each.turns),
            damages=listed,
            damage_count=len(raw.damages),
        )
    return _Log(job=job, reader=reader, digest=reader.digest(file), raw=raw)


def _finish(opened: _Log) -> None:
    """End the job. Remember the log if it was read without damage and stored without conflict."""
    job, rows = opened.job, list(opened.job.sessions.order_by("ordinal"))
    conflicts = [row.reason for row in rows if row.state == ImportJobSession.State.CONFLICT]
    if rows and len(conflicts) == len(rows):
        _end(job, "import_conflict", conflicts[0])
        return
    stored = [row.session_id for row in rows if row.session_id is not None]
    if stored and len(stored) == len(rows) and not opened.raw.damages:
        logs = (ImportedLog(session_id=id, digest=opened.digest, sessions=len(stored)) for id in stored)
        ImportedLog.objects.bulk_create(logs, ignore_conflicts=True)
    _end(job)


def _end(job: ImportJob, code: str = "", error: str = "") -> None:
    state = ImportJob.State.FAILED if code else ImportJob.State.DONE
    text = error[:500].replace("\0", "\ufffd")
    if release(_still_own(job), state=state, error_code=code, error=text, finished_at=Now()):
        upload_delete(job)


# -- The claim ----------------------------------------------------------------------------------


def _still_own(job: ImportJob) -> QuerySet[ImportJob]:
    """Select the job, unless it was cancelled or another worker has claimed it."""
    return still_own(job).filter(state=ImportJob.State.RUNNING)


def _locker(job: ImportJob) -> Callable[[], ImportJob]:
    def lock() -> ImportJob:
        found = _still_own(job).select_for_update().first()
        if found is None:
            raise ClaimLost
        return found

    return lock


def _change(job: ImportJob, **changes: Any) -> None:
    if _still_own(job).update(**changes) != 1:
        raise ClaimLost
    for name, value in changes.items():
        setattr(job, name, value)
