"""Create, cancel and delete import jobs."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import Project
from redaction import redact
from sessions.models import ImportJob
from sessions.selectors.redaction import redaction_of
from sessions.services.claims import is_free, revoke
from sessions.services.commits import after_commit
from sessions.services.dispatch import IMPORT_STEP, task_dispatch
from sessions.services.imports.execution import LONGEST_LEASE
from sessions.services.imports.uploads import Readable, upload_delete, upload_store

#: Jobs that one sweep dispatches. Jobs that wait for a worker are free too, and more messages would pile up.
_SWEEP_JOBS = 50

#: Time after which the record of a finished job is deleted. Its sessions stay.
KEPT = timedelta(days=30)


class WrongState(Exception):
    """The job has already ended."""


class EmptyUpload(ValueError):
    """The uploaded file is empty."""


@transaction.atomic
def import_job_create(
    *, project: Project, name: str, file: Readable, format: str = "", is_dispatched: bool = True
) -> ImportJob:
    """Store an uploaded log and create its job; a worker starts it after the commit.

    Without `is_dispatched`, the caller runs the first slice. A log without a name gets one from its content.
    Raises `EmptyUpload`.
    """
    clean = str(redact(name, redaction=redaction_of(project))[0])[:200]
    job = ImportJob.objects.create(project=project, name=clean, requested_format=format, size=0)
    digest = upload_store(job, file)
    if not job.size:
        raise EmptyUpload("the file is empty")
    job.name = job.name or f"log-{digest[:12]}"
    job.save(update_fields=["size", "name"])
    if is_dispatched:
        after_commit(task_dispatch, IMPORT_STEP, job.pk)
    return job


@transaction.atomic
def import_job_cancel(*, job: ImportJob) -> ImportJob:
    """End a job. Sessions that are already imported are kept, even incomplete ones. Raises `WrongState`."""
    rows = ImportJob.objects.filter(pk=job.pk, state__in=ImportJob.OPEN)
    if not revoke(rows, state=ImportJob.State.CANCELLED, finished_at=Now()):
        raise WrongState("the import has already ended")
    upload_delete(job)
    job.refresh_from_db()
    return job


def import_jobs_sweep() -> int:
    """Dispatch the oldest open jobs without a worker. Returns their number."""
    jobs = ImportJob.objects.filter(is_free(longest=LONGEST_LEASE), state__in=ImportJob.OPEN).order_by("pk")
    return sum(task_dispatch(IMPORT_STEP, id) for id in jobs.values_list("pk", flat=True)[:_SWEEP_JOBS])


def import_jobs_expire() -> int:
    """Delete the records of jobs that ended long ago. Returns their number."""
    old = ImportJob.objects.filter(finished_at__lt=timezone.now() - KEPT)
    return old.delete()[1].get(ImportJob._meta.label, 0)
