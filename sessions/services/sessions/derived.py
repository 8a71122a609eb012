"""What is derived of a session, made anew at once where the session changes without moving a clock.

The beat looks at sessions that have moved lately. An old one whose log is imported again, or whose compaction
is reverted, has not: it would wait for the pass over all.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.db import transaction

from sessions.models import AgentSession
from sessions.services.sessions.profiles import profile_write
from sessions.services.spending.rollups import rollup_fill


def derived_follow(*, session: AgentSession) -> None:
    """Makes the session's profile and sums behind the commit. Where that fails the pass over all does it."""
    transaction.on_commit(partial(_make, session.pk), robust=True)


def _make(session_id: UUID) -> None:
    session = AgentSession.objects.filter(pk=session_id).first()
    if session is None:
        return
    rollup_fill(session_id=session_id)
    profile_write(session=session)
