"""Restore tool definitions that were removed for lack of room, when the agent changes them."""

from __future__ import annotations

from uuid import UUID

from compaction.components import TOOLS
from compaction.eviction import restore_edits
from compaction.strategies import shed
from compaction.triggers import restore
from sessions.models import AgentSession, Compaction
from sessions.services.compactions.given_edits import edits_apply
from sessions.services.compactions.planning import plan_request, view_load

TRIGGER = restore.TRIGGER


def tools_restore(session_id: UUID) -> Compaction | None:
    """Restore the tool definitions. Returns None if they do not fit. The caller has locked the session."""
    loaded = view_load(AgentSession.objects.get(pk=session_id))
    edits = [edit for edit in restore_edits(loaded.view) if edit.text == TOOLS]
    room = plan_request(loaded, trigger=TRIGGER.name).budget_tokens
    if loaded.view.with_edits(edits).tokens > room:
        return None
    reason = "the agent changed its tools, and the new ones fit"
    return edits_apply(loaded, edits, trigger=TRIGGER, step=shed.NAME, reason=reason)
