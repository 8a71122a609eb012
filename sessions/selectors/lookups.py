"""Finding a session of a project by its id or external id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import LiteralString, TypeVar
from uuid import UUID

from sessions.models import AgentSession
from sessions.store.postgres import rows_fetch

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The fields of a session that are needed to parse a push.

    `format` may have been detected since the lookup, so the push checks it against the session.
    """

    id: UUID
    format: str | None


#: Routes cached by this process. If the session was deleted, the statement that uses its route finds none.
_routes: dict[tuple[UUID, str], Route] = {}

_ROUTES_SIZE = 100_000

#: A session with this id precedes one with the same external id.
_ROUTE: LiteralString = """
SELECT id, format FROM agent_sessions_agentsession
 WHERE project_id = %(project)s AND (id = %(id)s::uuid OR external_id = %(name)s)
 ORDER BY (id = %(id)s::uuid) DESC NULLS LAST LIMIT 1
"""


def session_route(*, project_id: UUID, name: str) -> Route | None:
    """Return the route of the session with this id or external id, or None. Cached."""
    if (known := _routes.get((project_id, name))) is not None:
        return known
    rows = rows_fetch(_ROUTE, {"project": project_id, "id": as_uuid(name), "name": name})
    if not rows:
        return None
    [(id, format)] = rows
    route = Route(id=id, format=format)
    route_remember(project_id=project_id, name=name, route=route)
    return route


def session_route_cached(*, project_id: UUID, name: str) -> Route | None:
    """Return the cached route of the session with this id or external id."""
    return _routes.get((project_id, name))


def route_remember(*, project_id: UUID, name: str, route: Route) -> None:
    """Cache the route of the session with this id or external id."""
    if len(_routes) >= _ROUTES_SIZE:
        _routes.clear()
    _routes[project_id, name] = route


def route_forget(*, project_id: UUID, name: str) -> None:
    """Remove a route from the cache, because its session was deleted or its format may have been detected."""
    _routes.pop((project_id, name), None)


def with_session_route(*, project_id: UUID, name: str, use: Callable[[Route], T | None]) -> T | None:
    """Return `use(route)` for the session's route, or None if there is no session.

    `use` returns None if the session of the route no longer exists. The name is then looked up again,
    because another process may have deleted and recreated the session.
    """
    for _ in range(2):
        route = session_route(project_id=project_id, name=name)
        if route is None:
            return None
        if (result := use(route)) is not None:
            return result
        route_forget(project_id=project_id, name=name)
    return None


def session_find(*, project_id: UUID, name: str) -> AgentSession | None:
    """Return the session with this id or external id, or None. No name contains NUL."""
    if "\0" in name:
        return None
    rows = AgentSession.objects.filter(project_id=project_id)
    if (uuid := as_uuid(name)) is not None and (found := rows.filter(pk=uuid).first()):
        return found
    return rows.filter(external_id=name).first()


def session_newest(*, project_id: UUID, created_by_id: int | None = None) -> AgentSession | None:
    """Return the most recently active session of a project, or of one user in it, or None."""
    rows = AgentSession.objects.filter(project_id=project_id)
    if created_by_id is not None:
        rows = rows.filter(created_by=created_by_id)
    return rows.order_by("-last_active_at", "-id").first()


def as_uuid(text: str) -> UUID | None:
    """Parse a UUID. Return None if `text` is not one."""
    try:
        return UUID(text)
    except ValueError:
        return None
