"""Recently active sessions, for the data that the scheduler derives from them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from accounts.models import Project
from sessions.models import AgentSession, Compaction

#: Period that a scheduled pass covers. Older changes were processed earlier or wait for a full pass.
RECENT = timedelta(hours=1)


def sessions_active_since(since: datetime) -> QuerySet[AgentSession, Any]:
    """Return the ids of sessions that were active, created or compacted since then.

    Reads by index, so the cost depends on the number of active sessions only. Misses the re-import of an old
    log and the revert of a compaction in an old session, which change no timestamp: those refresh derived
    data immediately (`sessions/services/derived.py`).
    """
    first_id = UUID(int=int(since.timestamp() * 1_000) << 80)  # ids contain their creation time
    active = AgentSession.objects.filter(project__in=Project.objects.all(), last_active_at__gte=since)
    made = AgentSession.objects.filter(pk__gte=first_id)
    compacted = Compaction.objects.filter(finished_at__gte=since)
    return active.values("pk").union(made.values("pk"), compacted.values("session_id"))
