"""Find the session of a log, or create it."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import Project
from importers.base import ImportedSession
from sessions.models import AgentSession
from sessions.models.session import GATEWAY, TELEMETRY
from sessions.services.imports.family import family_link, parent_set


class ImportConflictError(Exception):
    """The log contradicts the session stored under its id, which is left unchanged."""


def session_find_or_create(
    project: Project, facts: ImportedSession, origin: str, recorded: UUID | None
) -> tuple[AgentSession, bool]:
    """Return the locked session and whether it was created. Raises `ImportConflictError`.

    `recorded` is the session without a name in which the gateway recorded the calls of the log.
    """
    parent = parent_of(project, facts)
    if parent is not None:  # it is locked first, as by the other sources; it may have just been deleted
        parent = AgentSession.objects.select_for_update(no_key=True).filter(pk=parent.pk).first()
    if recorded is not None:
        _name(project, recorded, facts, parent)
    started = facts.started_at or timezone.now()
    session, created = AgentSession.objects.select_for_update().get_or_create(
        project=project,
        external_id=_recorded_name(project, facts) or facts.external_id,
        defaults={
            "format": facts.format,
            "origin": origin,
            "started_at": started,
            "last_active_at": started,
        },
    )
    if session.origin == TELEMETRY:
        session.origin, session.format = origin, facts.format
        session.started_at = min(session.started_at, started)
    return session, created


def _name(project: Project, recorded: UUID, facts: ImportedSession, parent: AgentSession | None) -> None:
    """Give the session the name and the parent that its client did not send, unless another has the name."""
    sessions = AgentSession.objects.filter(project=project)
    unnamed = sessions.select_for_update().filter(pk=recorded, external_id=str(recorded)).first()
    if unnamed is None or sessions.filter(external_id=facts.external_id).exists():
        return
    unnamed.external_id = facts.external_id
    parent_set(unnamed, parent, name=facts.parent_external_id)
    with suppress(IntegrityError), transaction.atomic():  # another session is just getting the name
        unnamed.save(update_fields=["external_id", "parent", "metadata"])
        family_link(session_id=unnamed.pk)


def _recorded_name(project: Project, facts: ImportedSession) -> str | None:
    """Return the name under which the gateway recorded a sub-agent, or None."""
    parent, name = facts.parent_external_id, facts.external_id
    if parent is None:
        return None
    names = {f"{parent}/{name}", f"{parent}/{name.removeprefix(f'{parent}:agent-')}"}
    rows = AgentSession.objects.filter(project=project, external_id__in=names, origin=GATEWAY)
    return rows.values_list("external_id", flat=True).first()


def parent_of(project: Project, facts: ImportedSession) -> AgentSession | None:
    """Return the stored session that started this one, or None."""
    if facts.parent_external_id is None:
        return None
    return AgentSession.objects.filter(project=project, external_id=facts.parent_external_id).first()
