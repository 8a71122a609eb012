"""Retention: delete sessions that have been inactive for the project's retention period.

Before it is set, a dry run shows what would be deleted. Deletion begins a week later; until then the
project's pages announce it, and removing the period prevents it. Sessions are deleted in batches, each in a
separate transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, Min, Sum
from django.utils import timezone

from accounts.actors import SYSTEM, Actor
from accounts.models import Project
from accounts.services.audit import audit_record
from accounts.services.projects import project_update
from sessions.models import AgentSession
from sessions.services.sessions.lifecycle import session_delete

#: Time between setting or shortening the period and the first deletion.
NOTICE = timedelta(days=7)

#: Sessions deleted per project and run. The task runs again until none is left.
_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The sessions that would be deleted now."""

    sessions: int
    turns: int
    oldest: datetime | None


def retention_dry_run(*, project: Project, days: int) -> DryRun:
    """Return what a retention period would delete now."""
    found = AgentSession.objects.filter(
        project=project, last_active_at__lt=timezone.now() - timedelta(days=days)
    ).aggregate(sessions=Count("id"), turns=Sum("turn_count"), oldest=Min("last_active_at"))
    return DryRun(sessions=found["sessions"], turns=found["turns"] or 0, oldest=found["oldest"])


def retention_set(*, project: Project, days: int | None, actor: Actor = SYSTEM) -> None:
    """Set the retention period; None keeps all sessions. A shorter period takes effect after `NOTICE`."""
    before, begins = project.retention_days, project.retention_begins_at
    if days is None:
        begins = None
    elif before is None or days < before:
        begins = timezone.now() + NOTICE
    changes = {"retention_days": days, "retention_begins_at": begins}
    project_update(project=project, changes=changes, actor=actor)


def retention_run(*, now: datetime | None = None) -> int:
    """Delete inactive sessions, at most one batch per project. Return how many."""
    now = now or timezone.now()
    projects = Project.objects.filter(retention_days__isnull=False, retention_begins_at__lte=now)
    return sum(_run(project, now) for project in projects.order_by("pk"))


def _run(project: Project, now: datetime) -> int:
    assert project.retention_days is not None
    limit = now - timedelta(days=project.retention_days)
    old = AgentSession.objects.filter(project=project, last_active_at__lt=limit)
    rows = list(old.order_by("last_active_at")[:_BATCH])
    deleted = 0
    for session in rows:
        with transaction.atomic():
            # It may have become active again, or the setting may have changed. The lock keeps new turns out
            # until the session is deleted.
            still_old = old.filter(pk=session.pk, project__retention_days=project.retention_days)
            if still_old.select_for_update(no_key=True, of=("self",)).first() is not None:
                session_delete(session=session)
                deleted += 1
    if deleted:
        detail = {"sessions": deleted, "days": project.retention_days}
        audit_record(action="retention.ran", project=project, target=project.slug, detail=detail)
    return deleted
