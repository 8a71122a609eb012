"""Look up the session, or another row, that a request names."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from django.db.models import Model, QuerySet

from sessions.api.auth import authenticate
from sessions.api.endpoint import ApiCall
from sessions.api.errors import NotFound
from sessions.models import AgentSession
from sessions.selectors.lookups import Route, as_uuid, session_find, with_session_route

Row = TypeVar("Row", bound=Model)
T = TypeVar("T")


def session_or_404(call: ApiCall, name: str) -> AgentSession:
    session = session_find(project_id=call.principal.project_id, name=name)
    return session if session is not None else raise_session_not_found(name)


def row_or_404(rows: QuerySet[Row], id: str, *, kind: str) -> Row:
    """Return the row of the project with this id. `kind` names it in the error and in the URL."""
    uuid = as_uuid(id)
    row = rows.filter(pk=uuid).first() if uuid is not None else None
    if row is None:
        raise NotFound(f"No {kind} with the id {id!r} in this project.", param=f"{kind}_id")
    return row


def raise_session_not_found(name: str) -> NoReturn:
    raise NotFound(f"No session with the id {name!r} in this project.", param="id")


def with_session(call: ApiCall, name: str, use: Callable[[Route], T | None]) -> T:
    """Call `use` with the cached route of the session, and return its result.

    `use` returns None if it finds no session or the key is invalid. In that case, raises the error for it.
    """
    found = with_session_route(project_id=call.principal.project_id, name=name, use=use)
    return found if found is not None else raise_key_or_session_error(call, name)


def raise_key_or_session_error(call: ApiCall, name: str) -> NoReturn:
    """Raise the error for a statement that found no row: the key is invalid or the session does not exist.

    For endpoints that verify the key and find the session in one statement.
    """
    authenticate(call.request)
    raise_session_not_found(name)
