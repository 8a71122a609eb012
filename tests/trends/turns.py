"""Turns written directly to the table, because trends only use their usage columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from accounts.models import Project
from sessions.models import AgentSession, Turn


def session_make(project: Project, name: str, **fields: object) -> AgentSession:
    return AgentSession.objects.create(project=project, external_id=name, format="openai", **fields)


def turn_make(session: AgentSession, index: int, at: datetime, *, cost: int | None = 100, **fields) -> Turn:
    usage = {"uncached_tokens": 10, "cache_read_tokens": 80, "cache_write_tokens": 10, "output_tokens": 5}
    values = {
        "model": "claude-sonnet-4-5",
        "first_position": index,
        "message_count": 1,
        "prompt_estimate": 100,
        "prompt_reported": 100,
        "cost_microusd": cost,
        **usage,
        **fields,
    }
    return Turn(session=session, index=index, at=at, **values)


def turns_add(session: AgentSession, turns: Sequence[Turn]) -> None:
    Turn.objects.bulk_create(turns)
    session.turn_count += len(turns)
    session.save(update_fields=["turn_count"])
