"""Refresh the derived data of an inactive session when it changes.

The scheduler refreshes sessions that were active recently. An older session whose log is imported again, or
whose compaction is reverted, would have to wait for the pass over all sessions.
"""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from django.db import IntegrityError

from sessions.models import AgentSession
from sessions.services.commits import after_commit
from sessions.services.sessions.profiles import profile_write
from sessions.services.spending.rollups import rollup_fill
from sessions.services.tools.counting import session_tools_count


def derived_refresh_on_commit(*, session: AgentSession) -> None:
    """Refresh the data after the commit. If that fails, the pass over all sessions does it."""
    after_commit(session_derive, session_id=session.pk)


def session_derive(*, session_id: UUID) -> None:
    """Derive the data now. Does nothing if the session was deleted."""
    session = AgentSession.objects.filter(pk=session_id).first()
    if session is None:
        return
    rollup_fill(session_id=session_id)
    session_tools_count(session_id=session_id)
    with suppress(IntegrityError):  # the session has just been deleted
        profile_write(session=session)
