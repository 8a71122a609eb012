"""Reads of a session's compactions, for its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from sessions.models import AgentSession, Compaction

#: As many as the page shows; the API has all of them.
SHOWN = 20

#: So long after the last change something new may still arrive.
_LIVELY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionList:
    """The newest compactions; `is_live` says whether it is worth looking again soon."""

    rows: Sequence[Compaction]
    is_live: bool

    @property
    def is_open(self) -> bool:
        return any(row.state in Compaction.OPEN for row in self.rows)


def compactions_newest(*, session: AgentSession) -> CompactionList:
    """One query."""
    rows = list(session.compactions.order_by("-number")[:SHOWN])
    times = [session.last_active_at, *(row.finished_at or row.created_at for row in rows[:1])]
    is_open = any(row.state in Compaction.OPEN for row in rows)
    return CompactionList(rows=rows, is_live=is_open or max(times) > timezone.now() - _LIVELY)
