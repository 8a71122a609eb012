"""Append turns without messages: calls of which only the usage is known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from compaction.messages import Usage
from sessions.models import AgentSession, Turn, TurnSource
from sessions.models.session import TELEMETRY
from sessions.selectors.convert import usage_fields
from sessions.services.calls.counters import usage_count
from sessions.services.spending.rollups import rollups_invalidate


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCall:
    """A call whose messages are unknown. `usage` is None for a compaction without its next call."""

    at: datetime
    request_id: str
    model: str = ""
    usage: Usage | None = None
    response_id: str | None = None
    cost_microusd: int | None = None
    first_token_ms: int | None = None
    duration_ms: int | None = None
    client_compaction: dict[str, Any] | None = None
    source: TurnSource = TurnSource.TELEMETRY


def call_append(session: AgentSession, call: ReportedCall) -> None:
    """Append a call as the last turn of the locked session, and save the session."""
    awaiting = _awaiting(session)
    if awaiting is not None:
        call_fields = {**_fields(session, call), "client_compaction": awaiting.client_compaction}
        Turn.objects.filter(session=session, index=awaiting.index).update(**call_fields)
        rollups_invalidate(session.pk)
    else:
        Turn.objects.bulk_create([Turn(session=session, index=session.turn_count, **_fields(session, call))])
        session.turn_count += 1
    _count(session, call)


def _awaiting(session: AgentSession) -> Turn | None:
    """Return the last turn if it is a reported compaction without its next call."""
    if not session.turn_count or session.message_count:
        return None
    last = Turn.objects.filter(session=session, index=session.turn_count - 1, message_count=0).first()
    is_awaiting = last is not None and last.client_compaction is not None and last.prompt_reported is None
    return last if is_awaiting else None


def _fields(session: AgentSession, call: ReportedCall) -> dict[str, Any]:
    size = call.usage.prompt_tokens if call.usage is not None else 0
    return {
        "at": call.at,
        "model": call.model[:200],
        "first_position": session.message_count,
        "message_count": 0,
        "source": call.source,
        "preamble_version": session.preamble_version,
        "prompt_estimate": size,
        "cost_microusd": call.cost_microusd,
        "request_id": call.request_id,
        "response_id": call.response_id,
        "first_token_ms": call.first_token_ms,
        "duration_ms": call.duration_ms,
        "client_compaction": call.client_compaction,
        **usage_fields(call.usage),
    }


def _count(session: AgentSession, call: ReportedCall) -> None:
    is_first = session.turn_count == 1 and session.origin == TELEMETRY
    is_newest = is_first or call.at >= session.last_active_at  # reports may arrive in any order
    if call.usage is not None:
        usage_count(session, call.usage, cost_microusd=call.cost_microusd, is_last=is_newest)
    if is_newest or not session.model:
        session.model = call.model[:200] or session.model
    session.started_at = call.at if is_first else min(session.started_at, call.at)
    session.last_active_at = call.at if is_first else max(session.last_active_at, call.at)
    session.save()
