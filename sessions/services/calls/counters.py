"""The counters of a session: the usage, cost and prompt size of its calls."""

from __future__ import annotations

from compaction.messages import USAGE_COUNTS, Usage
from sessions.models import AgentSession, Turn

#: The fields that `usage_count` changes.
COUNTERS = (*USAGE_COUNTS, "last_prompt_tokens", "peak_prompt_tokens", "cost_microusd", "unpriced_turns")


def usage_count(session: AgentSession, usage: Usage, *, cost_microusd: int | None, is_last: bool) -> None:
    """Add a call to the counters of a session, without saving it. `is_last`: no later call is stored."""
    for name in USAGE_COUNTS:
        setattr(session, name, getattr(session, name) + getattr(usage, name))
    if is_last:
        session.last_prompt_tokens = usage.prompt_tokens
    session.peak_prompt_tokens = max(session.peak_prompt_tokens, usage.prompt_tokens)
    session.cost_microusd += cost_microusd or 0
    session.unpriced_turns += cost_microusd is None


def turn_uncount(session: AgentSession, turn: Turn) -> None:
    """Subtract a turn from the counters of a session, without saving it."""
    for name in USAGE_COUNTS:
        setattr(session, name, max(getattr(session, name) - (getattr(turn, name) or 0), 0))
    session.cost_microusd = max(session.cost_microusd - (turn.cost_microusd or 0), 0)
    session.unpriced_turns -= turn.cost_microusd is None and turn.prompt_reported is not None
