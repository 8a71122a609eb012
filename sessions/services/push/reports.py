"""Calls that telemetry reported before an agent pushes their messages."""

from __future__ import annotations

from sessions.models import AgentSession
from sessions.services.calls.match import family_of
from sessions.services.calls.remove import call_take
from sessions.services.push.values import Push, SessionState


def report_take(state: SessionState, push: Push) -> str | None:
    """Remove the turn without messages that telemetry reported for the pushed call, and return its id.

    Returns None if there is none. The caller has locked the session.
    """
    family = family_of(AgentSession.objects.get(pk=state.id))
    return call_take(push.identity(), project_id=state.project_id, family=family)
