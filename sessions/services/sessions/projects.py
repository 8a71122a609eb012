"""Delete projects."""

from __future__ import annotations

from django.db import transaction

from accounts.actors import SYSTEM
from accounts.models import ApiKey, Project
from accounts.services.audit import audit_record
from sessions.models import AgentSession
from sessions.services.sessions.lifecycle import session_delete


def project_delete(*, project: Project) -> None:
    """Delete a project with everything that belongs to it, including its audit log.

    Its API keys are deleted first, so that nothing is added meanwhile. If it is interrupted, repeat it.
    """
    ApiKey.objects.filter(project=project).delete()
    for session in AgentSession.objects.filter(project=project).only("pk").iterator():
        session_delete(session=session)
    with transaction.atomic():
        project.delete()
        audit_record(action="project.deleted", project=None, actor=SYSTEM, target=project.slug)
