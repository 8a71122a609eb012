"""Import whole logs: store their sessions, and remember the log so that it is not read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, Max, Min

from accounts.models import Project
from sessions.models import AgentSession, ImportedLog
from sessions.services.dispatch import MEMORY_UPDATE, task_dispatch
from sessions.services.imports.find import ImportConflictError
from sessions.services.imports.reader import ReadLog
from sessions.services.imports.store import ImportResult, prepared_import


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLog:
    """A log that is already stored: the format and the number of its sessions."""

    origin: str
    sessions: int


def known_logs(project: Project) -> Mapping[bytes, KnownLog]:
    """Return the logs that need not be read again, by digest: all of their sessions are stored."""
    rows = (
        ImportedLog.objects.filter(session__project=project)
        .values("digest")
        .annotate(stored=Count("id"), expected=Max("sessions"), origin=Min("session__origin"))
    )
    return {
        bytes(row["digest"]): KnownLog(origin=row["origin"], sessions=row["expected"])
        for row in rows
        if row["stored"] >= row["expected"]
    }


def log_import(*, project: Project, log: ReadLog) -> list[ImportResult | ImportConflictError]:
    """Store the sessions of a log, each in its own transaction, and return the result of each.

    The log is remembered if it was read without damage and stored without conflict.
    """
    results: list[ImportResult | ImportConflictError] = []
    for prepared in log.sessions:
        try:
            result = prepared_import(project=project, prepared=prepared, origin=log.importer)
        except ImportConflictError as error:
            results.append(error)
            continue
        results.append(result)
        if result.changed and project.memory_upkeep:
            task_dispatch(MEMORY_UPDATE, result.session.pk)
    imported = [result.session for result in results if isinstance(result, ImportResult)]
    if imported and len(imported) == len(results) and not log.damages:
        log_remember(log.digest, [session.pk for session in imported])
    return results


@transaction.atomic
def log_remember(digest: bytes, sessions: Sequence[UUID]) -> None:
    """Record that all sessions of a log are stored, so that it is not read again unless one was deleted."""
    # Parents first, as other writers lock them: a sub-agent may have been recorded before its parent.
    rows = AgentSession.objects.select_for_update(no_key=True).filter(pk__in=sessions)
    rows = rows.order_by(F("parent").asc(nulls_first=True), "pk")
    stored = list(rows.values_list("pk", flat=True))
    logs = [ImportedLog(session_id=id, digest=digest, sessions=len(sessions)) for id in stored]
    ImportedLog.objects.bulk_create(logs, ignore_conflicts=True, batch_size=1000)
