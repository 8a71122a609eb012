"""Add the usage of a call to its turn, which another source stored without it."""

from __future__ import annotations

from compaction.messages import USAGE_COUNTS, Usage
from sessions.models import AgentSession, Turn
from sessions.selectors.convert import usage_fields
from sessions.services.spending.rollups import rollups_invalidate


def call_complete(turn: Turn, *, usage: Usage, cost_microusd: int | None, model: str) -> None:
    """Store the usage in the turn and add it to the counters of its session, which is locked."""
    for name, value in usage_fields(usage).items():
        setattr(turn, name, value)
    turn.cost_microusd, turn.model = cost_microusd, model[:200] or turn.model
    turn.save(update_fields=[*usage_fields(usage), "cost_microusd", "model"])
    session = AgentSession.objects.get(pk=turn.session_id)
    for name in USAGE_COUNTS:
        setattr(session, name, getattr(session, name) + getattr(usage, name))
    if turn.index == session.turn_count - 1:
        session.last_prompt_tokens = usage.prompt_tokens
    session.peak_prompt_tokens = max(session.peak_prompt_tokens, usage.prompt_tokens)
    session.cost_microusd += cost_microusd or 0
    session.unpriced_turns += cost_microusd is None
    session.save(
        update_fields=[
            *USAGE_COUNTS, "last_prompt_tokens", "peak_prompt_tokens", "cost_microusd", "unpriced_turns"
        ]
    )  # fmt: skip
    rollups_invalidate(session.pk)
