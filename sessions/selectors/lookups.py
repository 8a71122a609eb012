"""Finding a session by either of its ids, within a project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from sessions.models import AgentSession

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What never changes of a session: enough to read a push before the lock."""

    id: UUID
    format: str


#: Routes that this process has looked up. Only a deletion makes one wrong, and then the statement that uses
#: it finds no session.
_routes: dict[tuple[UUID, str], Route] = {}

_ROUTES_SIZE = 100_000


def session_route(*, project_id: UUID, name: str) -> Route | None:
    """The session that `name` is the id or the external id of; None where there is none."""
    if (known := _routes.get((project_id, name))) is not None:
        return known
    session = session_find(project_id=project_id, name=name)
    if session is None:
        return None
    if len(_routes) >= _ROUTES_SIZE:
        _routes.clear()
    route = _routes[project_id, name] = Route(id=session.pk, format=session.format)
    return route


def route_forget(*, project_id: UUID, name: str) -> None:
    """Remove a route from the cache, because its session is gone."""
    _routes.pop((project_id, name), None)


def with_session_route(*, project_id: UUID, name: str, use: Callable[[Route], T | None]) -> T | None:
    """What `use` makes of the session's route; None where there is no session.

    None from `use` says that the session of that route is gone: the name is then looked up anew, since
    another process may have deleted it and made it again.
    """
    for _ in range(2):
        route = session_route(project_id=project_id, name=name)
        if route is None:
            return None
        if (made := use(route)) is not None:
            return made
        route_forget(project_id=project_id, name=name)
    return None


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
