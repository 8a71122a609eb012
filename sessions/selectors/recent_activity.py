"""Recently active sessions, for the data that the scheduler derives from them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

from django.db.models import QuerySet

from accounts.models import Project
from sessions.models import AgentSession, Compaction

#: Period that a scheduled pass covers. Older changes were processed earlier or wait for a full pass.
RECENT = timedelta(hours=1)

#: `sessions_active_since` in direct statements, with the parameters of `active_parameters`.
ACTIVE_SESSIONS: LiteralString = """
SELECT s.id FROM accounts_project p
  JOIN agent_sessions_agentsession s ON s.project_id = p.id AND s.last_active_at >= %(since)s
 UNION SELECT id FROM agent_sessions_agentsession WHERE id >= %(first_id)s
 UNION SELECT session_id FROM agent_sessions_compaction WHERE finished_at >= %(since)s
"""


def sessions_active_since(since: datetime) -> QuerySet[AgentSession, Any]:
    """Return the ids of sessions that were active, created or compacted since then.

    Reads by index, so the cost depends on the number of active sessions only. Misses the re-import of an old
    log and the revert of a compaction in an old session, which change no timestamp: those refresh derived
    data immediately (`sessions/services/sessions/derived.py`).
    """
    active = AgentSession.objects.filter(project__in=Project.objects.all(), last_active_at__gte=since)
    made = AgentSession.objects.filter(pk__gte=_first_id(since))
    compacted = Compaction.objects.filter(finished_at__gte=since)
    return active.values("pk").union(made.values("pk"), compacted.values("session_id"))


def active_parameters(since: datetime) -> dict[str, Any]:
    """Return the parameters of `ACTIVE_SESSIONS`."""
    return {"since": since, "first_id": _first_id(since)}


def _first_id(since: datetime) -> UUID:
    """Return the least id of sessions that were created since then. Ids contain their creation time."""
    return UUID(int=int(since.timestamp() * 1_000) << 80)
