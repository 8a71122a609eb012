"""The session that a call names."""

from __future__ import annotations

from typing import NoReturn

from sessions.api.auth import authenticate
from sessions.api.endpoint import Call
from sessions.api.errors import NotFound
from sessions.models import AgentSession
from sessions.selectors.lookups import session_find


def found_or_404(call: Call, name: str) -> AgentSession:
    session = session_find(project_id=call.principal.project_id, name=name)
    return session if session is not None else no_session(name)


def no_session(name: str) -> NoReturn:
    raise NotFound("not_found", f"there is no session {name!r} in this project", param="id")


def gone(call: Call, name: str) -> NoReturn:
    """For the calls that check in their own statement that the key lives: it may be the key that is gone."""
    authenticate(call.request)
    no_session(name)
