"""Sessions that have moved lately, for what the beat derives of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from accounts.models import Project
from sessions.models import AgentSession, Compaction

#: How far back a pass of the beat looks. What moved before was caught up with, or waits for a pass over all.
RECENT = timedelta(hours=1)


def sessions_active_since(since: datetime) -> QuerySet[AgentSession, Any]:
    """The ids of the sessions that were active, made or compacted since then.

    Reads by indexes as much as has moved, however many sessions rest. It misses a log that was imported again
    and is still an old one, and a compaction that was reverted in an old session: neither moves a clock, and
    what is derived of them is made at once (`sessions/services/derived.py`).
    """
    first_id = UUID(int=int(since.timestamp() * 1_000) << 80)  # ids are ordered by time
    active = AgentSession.objects.filter(project__in=Project.objects.all(), last_active_at__gte=since)
    made = AgentSession.objects.filter(pk__gte=first_id)
    compacted = Compaction.objects.filter(finished_at__gte=since)
    return active.values("pk").union(made.values("pk"), compacted.values("session_id"))
