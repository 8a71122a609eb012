"""Remove a turn without messages, because another source records the same call with its messages."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.models import F

from compaction.messages import USAGE_COUNTS
from sessions.models import (
    AgentSession,
    Comment,
    Compaction,
    MemoryExtractionState,
    MemoryRevision,
    MemoryUpdateState,
    Turn,
)
from sessions.models.session import TELEMETRY
from sessions.services.calls.match import CallIdentity, turn_with_usage, turns_by_id
from sessions.services.calls.store import turn_uncount
from sessions.services.spending.rollups import rollups_invalidate
from sessions.services.tools.counting import session_tools_reset

_FIGURES = ("prompt_reported", "cost_microusd", *USAGE_COUNTS)

#: Added to the numbers of turns while they are moved, so that no number occurs twice.
_APART = 1_000_000


def call_take(call: CallIdentity, *, project_id: UUID, family: Collection[UUID]) -> Turn | None:
    """Remove the turn without messages that telemetry reported for a call, and return it.

    Returns None if there is none. The caller has locked the first session of the family.
    """
    rows = turns_by_id(project_id=project_id, calls=[call]).filter(message_count=0, request_id__isnull=False)
    found = rows.values_list("session_id", "index").first()
    found = found or turn_with_usage(call, family=family, with_messages=False)
    if found is None:
        return None
    session_id, index = found
    session = AgentSession.objects.select_for_update().get(pk=session_id)
    turn = Turn.objects.get(session=session, index=index)
    _remove(session, turn)
    if session.pk not in family or session.parent_id is not None:
        _delete_if_empty(session)
    return turn


def _remove(session: AgentSession, turn: Turn) -> None:
    turn_uncount(session, turn)
    if _is_referenced(session):
        # Comments, compactions and memory refer to turns by number.
        Turn.objects.filter(session=session, index=turn.index).update(
            **dict.fromkeys(_FIGURES), prompt_estimate=0
        )
    else:
        _delete(session, turn)
    rollups_invalidate(session.pk)
    session.save()


def _delete_if_empty(session: AgentSession) -> None:
    """Delete a session that telemetry created for calls that another session now has."""
    is_empty = not session.turn_count and session.origin == TELEMETRY
    if is_empty and not session.children.exists() and not session.tool_runs.exists():
        session.delete()


def _is_referenced(session: AgentSession) -> bool:
    """Return whether tables other than that of the messages may refer to turns of the session."""
    numbered = (Comment, Compaction, MemoryRevision, MemoryUpdateState, MemoryExtractionState)
    return any(model.objects.filter(session=session).exists() for model in numbered)


def _delete(session: AgentSession, turn: Turn) -> None:
    """Delete the turn, and move the turns after it up by one."""
    Turn.objects.filter(session=session, index=turn.index).delete()
    moved = Turn.objects.filter(session=session, index__gt=turn.index).update(index=F("index") + _APART)
    if moved:
        session_tools_reset(session_id=session.pk)  # its counts refer to turns by number
    Turn.objects.filter(session=session, index__gt=_APART).update(index=F("index") - _APART - 1)
    session.messages.filter(turn_index__gt=turn.index).update(turn_index=F("turn_index") - 1)
    session.turn_count -= 1
    last = Turn.objects.filter(session=session, index=session.turn_count - 1).first()
    session.last_prompt_tokens = last.prompt_reported or last.prompt_served or 0 if last is not None else 0
