"""Finding a session by either of its ids, within a project."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sessions.models import AgentSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What never changes of a session, or only by its own pushes: enough to read a push before the lock."""

    id: UUID
    format: str
    model: str


def session_route(*, project_id: UUID, name: str) -> Route | None:
    rows = AgentSession.objects.filter(project_id=project_id)
    by = {"pk": uuid} if (uuid := as_uuid(name)) is not None else {"external_id": name}
    row = rows.filter(**by).values_list("pk", "format", "model").first()
    if row is None and uuid is not None:
        row = rows.filter(external_id=name).values_list("pk", "format", "model").first()
    return Route(id=row[0], format=row[1], model=row[2]) if row is not None else None


def session_find(*, project_id: UUID, name: str) -> AgentSession | None:
    rows = AgentSession.objects.filter(project_id=project_id)
    if (uuid := as_uuid(name)) is not None and (found := rows.filter(pk=uuid).first()):
        return found
    return rows.filter(external_id=name).first()


def as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
