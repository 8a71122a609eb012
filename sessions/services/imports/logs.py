"""Whole logs: their sessions are stored, and the log is remembered, so that it need not be read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, Max, Min

from accounts.models import Project
from sessions.models import ImportedLog
from sessions.services.dispatch import upkeep_dispatch
from sessions.services.imports.reader import ReadLog
from sessions.services.imports.sessions import ImportConflictError, ImportResult, prepared_import


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLog:
    """A log that is stored as it is: the format of its sessions, and how many it has."""

    origin: str
    sessions: int


def known_logs(project: Project) -> Mapping[bytes, KnownLog]:
    """The logs that need no reading, by digest: every session that they tell of has taken them in."""
    rows = (
        ImportedLog.objects.filter(session__project=project)
        .values("digest")
        .annotate(stored=Count("id"), told=Max("sessions"), origin=Min("session__origin"))
    )
    return {
        bytes(row["digest"]): KnownLog(origin=row["origin"], sessions=row["told"])
        for row in rows
        if row["stored"] >= row["told"]
    }


def log_import(*, project: Project, log: ReadLog) -> list[ImportResult | ImportConflictError]:
    """Stores the sessions of a log, each in a transaction of its own, and what became of each.

    A log that was read without damage and conflict is remembered, so that it is not read again.
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
            upkeep_dispatch(result.session.pk)
    taken = [result.session for result in results if isinstance(result, ImportResult)]
    if taken and len(taken) == len(results) and not log.damages:
        ImportedLog.objects.bulk_create(
            (ImportedLog(session=session, digest=log.digest, sessions=len(taken)) for session in taken),
            ignore_conflicts=True,
        )
    return results
