"""Add the usage of a call to its turn, which another source stored without it."""

from __future__ import annotations

from compaction.messages import Usage
from sessions.models import AgentSession, Turn
from sessions.selectors.convert import usage_fields
from sessions.services.calls.counters import COUNTERS, usage_count
from sessions.services.spending.rollups import rollups_invalidate


def call_complete(turn: Turn, *, usage: Usage, cost_microusd: int | None, model: str) -> None:
    """Store the usage in the turn and add it to the counters of its session, which is locked."""
    for name, value in usage_fields(usage).items():
        setattr(turn, name, value)
    turn.cost_microusd, turn.model = cost_microusd, model[:200] or turn.model
    turn.save(update_fields=[*usage_fields(usage), "cost_microusd", "model"])
    session = AgentSession.objects.get(pk=turn.session_id)
    is_last = turn.index == session.turn_count - 1
    usage_count(session, usage, cost_microusd=cost_microusd, is_last=is_last)
    session.save(update_fields=COUNTERS)
    rollups_invalidate(session.pk)
