"""Delete projects."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from django.db import IntegrityError, OperationalError, transaction

from accounts.actors import SYSTEM
from accounts.models import ApiKey, Project
from accounts.services.api_keys import api_key_revoke
from accounts.services.audit import audit_record
from sessions.models import AgentSession, ImportJob
from sessions.services.blobs import project_contents_remove
from sessions.services.imports.jobs import WrongState, import_job_cancel
from sessions.services.sessions.lifecycle import session_delete
from sessions.store.blobs import StorageUnavailable

#: Maximum number of attempts while requests and workers that began before still use the project.
_ATTEMPTS = 10


def project_delete(*, project: Project) -> None:
    """Delete a project with everything that belongs to it, including its audit log.

    Its API keys are revoked and its imports cancelled first, so that nothing else begins. The project remains
    until everything else is deleted: if this is interrupted, or raises `StorageUnavailable`, repeat it.
    """
    for key in ApiKey.objects.filter(project=project):
        api_key_revoke(key=key)
    for job in ImportJob.objects.filter(project=project, state__in=ImportJob.OPEN):
        with suppress(WrongState):
            import_job_cancel(job=job)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _delete(project.pk, project.slug)
            break
        except StorageUnavailable:
            raise
        except (IntegrityError, OperationalError):  # a running request has just added a row, or a deadlock
            if attempt == _ATTEMPTS:
                raise


def _delete(id: UUID, slug: str) -> None:
    for session in AgentSession.objects.filter(project=id).only("pk").iterator():
        session_delete(session=session)
    # The gateway records calls that began before their key was revoked, but none without a key.
    ApiKey.objects.filter(project=id).delete()
    with transaction.atomic():
        Project.objects.filter(pk=id).delete()
        project_contents_remove(id)
        audit_record(action="project.deleted", project=None, actor=SYSTEM, target=slug)
