"""Import jobs and what they did with each session."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sessions.models import ImportJob, ImportJobSession


def import_jobs_newest(*, project_id: UUID, before: UUID | None = None, limit: int) -> Sequence[ImportJob]:
    """Return the newest jobs of the project, those before `before` if it is given."""
    jobs = ImportJob.objects.filter(project_id=project_id)
    if before is not None:
        jobs = jobs.filter(pk__lt=before)
    return list(jobs.order_by("-pk")[:limit])


def import_jobs_open(project_id: UUID) -> int:
    """Return the number of jobs of the project that have not ended."""
    return ImportJob.objects.filter(project_id=project_id, state__in=ImportJob.OPEN).count()


def import_job_sessions(
    job: ImportJob, *, after: int | None = None, limit: int
) -> Sequence[ImportJobSession]:
    """Return the sessions of a job in the order of the log, from after the ordinal `after`."""
    rows = job.sessions.exclude(state=ImportJobSession.State.SKIPPED)
    if after is not None:
        rows = rows.filter(ordinal__gt=after)
    return list(rows.order_by("ordinal")[:limit])
