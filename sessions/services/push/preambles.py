"""Store and read system prompts and tools, and complete those of a push that replaces only one of them."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from sessions.models import Preamble
from sessions.services.ingestion import NewPreamble
from sessions.services.push.values import NewTurn


def preamble_store(turn: NewTurn, preamble: NewPreamble) -> None:
    """Store the system prompt and tools that apply from this turn on."""
    Preamble.objects.create(
        session_id=turn.session.id,
        version=turn.preamble_version,
        from_turn=turn.index,
        **preamble.columns,
    )


def preamble_complete(preamble: NewPreamble, *, session_id: UUID, kept: str) -> NewPreamble:
    """Return the preamble with the session's current system prompt or tools, as `kept` names them."""
    row = Preamble.objects.filter(session_id=session_id).order_by("-version").first()
    if row is None:
        return preamble
    stored = preamble_of(row)
    if kept == "system":
        return replace(preamble, system=stored.system, system_tokens=stored.system_tokens)
    return replace(preamble, tools=stored.tools, tools_tokens=stored.tools_tokens)


def preamble_of(row: Preamble) -> NewPreamble:
    """Return a stored system prompt and tools as they were pushed."""
    return NewPreamble(
        system=row.system,
        tools=row.tools,
        system_tokens=row.system_tokens,
        tools_tokens=row.tools_tokens,
    )
