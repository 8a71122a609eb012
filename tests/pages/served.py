"""Sessions with compactions for page tests."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from accounts.models import Project
from sessions.models import AgentSession
from sessions.services.compactions.apply import session_compact
from tests.pages.transcripts import make_session, reading_turn


def compacted_session(
    project: Project, *, turns: int = 12, name: str = "s-1", budget: int = 2_700
) -> AgentSession:
    """Create a session of `turns` file reads, compacted once after the last turn.

    With a small budget, the compaction writes a recap. No other trigger is active.
    """
    readings = [reading_turn(n, f"{n}: " + "a line of a file\n" * 300) for n in range(turns)]
    made = make_session(project, readings, name=name)
    made.budget_tokens, made.policy = budget, {"soft": 0, "hard": 0, "tail_share": 0.05}
    made.save()
    session_compact(session=made, trigger="user", reason="asked for by a test")
    made.refresh_from_db()
    return made


def address(name: str, session: AgentSession, *more: Any) -> str:
    return reverse(name, args=[session.project.slug, session.pk, *more])
