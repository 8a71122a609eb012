"""Add what a source reports about a call to its turn, which another source stored without it."""

from __future__ import annotations

from compaction.messages import Usage
from sessions.models import AgentSession, Turn
from sessions.selectors.convert import usage_fields
from sessions.services.calls.append import ReportedCall
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


def call_correct(turn: Turn, *, call: ReportedCall) -> None:
    """Replace output tokens that were estimated, and their cost, by those that the call reports."""
    session = AgentSession.objects.select_for_update().get(pk=turn.session_id)
    rows = Turn.objects.filter(session=session, index=turn.index, output_reported__isnull=False)
    stored = rows.first()
    if stored is None or call.usage is None:
        return
    cost = stored.cost_microusd if call.cost_microusd is None else call.cost_microusd
    session.output_tokens += call.usage.output_tokens - (stored.output_tokens or 0)
    session.cost_microusd += (cost or 0) - (stored.cost_microusd or 0)
    session.unpriced_turns += (cost is None) - (stored.cost_microusd is None)
    session.save(update_fields=["output_tokens", "cost_microusd", "unpriced_turns"])
    rows.update(
        output_tokens=call.usage.output_tokens,
        output_reported=None,
        cost_microusd=cost,
        first_token_ms=call.first_token_ms,
        duration_ms=call.duration_ms,
    )
    rollups_invalidate(session.pk)
