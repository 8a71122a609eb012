"""Retention: sessions that have rested long enough go. Never without having been announced.

Setting it tells first what would go, and nothing goes for a week: the project's pages say so all that time,
and taking the setting back stops it. Deletion is by batches, each session in its own transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min, Sum
from django.utils import timezone

from accounts.actors import SYSTEM, Actor
from accounts.models import Project
from accounts.services import audit_record, project_update
from sessions.models import AgentSession
from sessions.services.sessions.lifecycle import session_delete

#: Between setting it, or making it shorter, and the first deletion.
NOTICE = timedelta(days=7)

#: Sessions that one run deletes; the next run goes on.
_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What would go now."""

    sessions: int
    turns: int
    oldest: datetime | None


def retention_dry_run(*, project: Project, days: int) -> DryRun:
    """One query; writes nothing."""
    found = AgentSession.objects.filter(
        project=project, last_active_at__lt=timezone.now() - timedelta(days=days)
    ).aggregate(sessions=Count("id"), turns=Sum("turn_count"), oldest=Min("last_active_at"))
    return DryRun(sessions=found["sessions"], turns=found["turns"] or 0, oldest=found["oldest"])


def retention_set(*, project: Project, days: int | None, actor: Actor = SYSTEM) -> None:
    """None: everything is kept. A longer time holds at once, a shorter one after `NOTICE`."""
    before, begins = project.retention_days, project.retention_begins_at
    if days is None:
        begins = None
    elif before is None or days < before:
        begins = timezone.now() + NOTICE
    changes = {"retention_days": days, "retention_begins_at": begins}
    project_update(project=project, changes=changes, actor=actor)


def retention_run(*, now: datetime | None = None) -> int:
    """Deletes what has rested long enough, at most a batch for each project; how many sessions."""
    now = now or timezone.now()
    due = Project.objects.filter(retention_days__isnull=False, retention_begins_at__lte=now)
    return sum(_run(project, now) for project in due.order_by("pk"))


def _run(project: Project, now: datetime) -> int:
    assert project.retention_days is not None
    limit = now - timedelta(days=project.retention_days)
    old = AgentSession.objects.filter(project=project, last_active_at__lt=limit)
    rows = list(old.order_by("last_active_at")[:_BATCH])
    gone = 0
    for session in rows:
        # It may have woken up since, and the setting may have been taken back.
        if old.filter(pk=session.pk, project__retention_days=project.retention_days).exists():
            session_delete(session=session)
            gone += 1
    if gone:
        detail = {"sessions": gone, "days": project.retention_days}
        audit_record(action="retention.ran", project=project, target=project.slug, detail=detail)
    return gone
