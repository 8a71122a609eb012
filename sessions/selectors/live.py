"""The state of a session, with which an open page finds out whether it is up to date."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Max
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.selectors import projects_of
from sessions.models import AgentSession

#: Pages of sessions that were active within this time update themselves.
LIVE_PERIOD = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveState:
    """Numbers that change with everything that the pages display.

    `summed` is the number of turns in the rollups, from which the savings are calculated. `budget` is 0 for
    the default.
    """

    turns: int
    edits: int
    memory: int
    summed: int
    budget: int

    def encode(self) -> str:
        return f"{self.turns}.{self.edits}.{self.memory}.{self.summed}.{self.budget}"

    @classmethod
    def decode(cls, text: str) -> LiveState | None:
        pieces = text.split(".")
        if len(pieces) != 5 or not all(
            piece.isascii() and piece.isdigit() and len(piece) <= 10 for piece in pieces
        ):
            return None
        turns, edits, memory, summed, budget = map(int, pieces)
        return cls(turns=turns, edits=edits, memory=memory, summed=summed, budget=budget)


def is_live(session: AgentSession) -> bool:
    """Return whether the session was active recently. Runs no query."""
    return session.last_active_at > timezone.now() - LIVE_PERIOD


def live_state(*, user: Any, slug: str, id: UUID) -> LiveState | None:
    """Return the state of a session that the user may see, or None. One query, by primary keys."""
    rows = AgentSession.objects.filter(pk=id, project__in=projects_of(user).filter(slug=slug))
    rows = rows.annotate(
        memory=Coalesce(Max("memory_revisions__number"), 0),
        summed=Coalesce("rollupcursor__turns", 0),
        budget=Coalesce("budget_tokens", 0),
    )
    found = rows.values_list("turn_count", "edits_revision", "memory", "summed", "budget").first()
    if found is None:
        return None
    turns, edits, memory, summed, budget = found
    return LiveState(turns=turns, edits=edits, memory=memory, summed=summed, budget=budget)
