"""What a session's prompts are measured against: its budget here, or the window of its model."""

from __future__ import annotations

from dataclasses import dataclass

from sessions.budgets import budget_tokens
from sessions.models import AgentSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """`name` is "budget" or "window"."""

    name: str
    tokens: int


def limit_of(session: AgentSession) -> Limit | None:
    """The budget where prompts are served from here; of a log that was only imported, the model's window."""
    if session.origin == "api" or session.budget_tokens is not None or session.compaction_count:
        budget = budget_tokens(
            own=session.budget_tokens, context_window=session.context_window, model=session.model
        )
        return Limit(name="budget", tokens=budget)
    if session.context_window is not None:
        return Limit(name="window", tokens=session.context_window)
    return None
