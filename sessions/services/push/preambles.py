"""Complete the system prompt and tools of a push that replaces only one of them."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from sessions.models import Preamble
from sessions.services.ingestion import NewPreamble
from sessions.store import bodies


def preamble_complete(preamble: NewPreamble, *, session_id: UUID, kept: str) -> NewPreamble:
    """Return the preamble with the session's current system prompt or tools, as `kept` names them."""
    row = Preamble.objects.filter(session_id=session_id).order_by("-version").first()
    if row is None:
        return preamble
    if kept == "system":
        system = bodies.unpack(row.system) if row.system else None
        return replace(preamble, system=system, system_tokens=row.system_tokens)
    tools = bodies.unpack(row.tools) if row.tools else None
    return replace(preamble, tools=tools, tools_tokens=row.tools_tokens)
