"""Progress of memory extraction: a model that reads a session and updates its working memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, Sum
from django.utils import timezone

from accounts.models import Project
from sessions.models import AgentSession, MemoryExtraction, MemoryExtractionState
from sessions.selectors.summarizers import reader_missing


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionState:
    """The state of memory extraction for a session.

    `missing` is the reason why no model is used, or "". `turn` is the next turn to process. `last_error` is
    the error of the last attempt, or "". `retry_at` is the earliest time of the next attempt; None means now.
    `cost_microusd` excludes calls without a known price.
    """

    model: str
    missing: str
    turn: int
    read_at: datetime | None
    last_error: str
    retry_at: datetime | None
    readings: int
    unpriced: int
    cost_microusd: int

    @property
    def is_running(self) -> bool:
        """Whether a worker is processing the next turns."""
        return self.retry_at is not None and not self.last_error


def extraction_state(*, session: AgentSession, project: Project) -> ExtractionState:
    """Return the state of memory extraction for a session. Two queries."""
    row = MemoryExtractionState.objects.filter(session=session).first() or MemoryExtractionState(
        session=session
    )
    paid = MemoryExtraction.objects.filter(session=session).aggregate(
        count=Count("pk"), cost=Sum("cost_microusd"), unpriced=Count("pk", filter=Q(cost_microusd=None))
    )
    waits = row.lease_until is not None and row.lease_until > timezone.now()
    return ExtractionState(
        model=project.memory_model,
        missing=reader_missing(project),
        turn=row.turn,
        read_at=row.read_at,
        last_error=row.last_error,
        retry_at=row.lease_until if waits else None,
        readings=paid["count"],
        unpriced=paid["unpriced"],
        cost_microusd=paid["cost"] or 0,
    )
