"""Store the calls that other sources report, and count them in their sessions.

A call of which only the usage is known becomes a turn without messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from compaction.messages import USAGE_COUNTS, Usage
from sessions.models import AgentSession, Turn, TurnSource
from sessions.models.session import TELEMETRY
from sessions.selectors.convert import usage_fields
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


def call_complete(turn: Turn, *, usage: Usage, cost_microusd: int | None, model: str) -> None:
    """Store the usage in the turn and add it to the counters of its session, which is locked."""
    for name, value in usage_fields(usage).items():
        setattr(turn, name, value)
    turn.cost_microusd, turn.model = cost_microusd, model[:200] or turn.model
    turn.save(update_fields=[*usage_fields(usage), "cost_microusd", "model"])
    session = AgentSession.objects.get(pk=turn.session_id)
    is_last = turn.index == session.turn_count - 1
    usage_count(session, usage, cost_microusd=cost_microusd, is_last=is_last)
    session.save(update_fields=COUNTERS)
    rollups_invalidate(session.pk)


def call_correct(turn: Turn, *, call: ReportedCall) -> None:
    """Replace the estimated output tokens of the turn, and their cost, with those that the call reports."""
    session = AgentSession.objects.select_for_update().get(pk=turn.session_id)
    rows = Turn.objects.filter(session=session, index=turn.index, output_reported__isnull=False)
    stored = rows.first()
    if stored is None or call.usage is None:
        return
    cost = stored.cost_microusd if call.cost_microusd is None else call.cost_microusd
    session.output_tokens += call.usage.output_tokens - (stored.output_tokens or 0)
    session.cost_microusd += (cost or 0) - (stored.cost_microusd or 0)
    session.unpriced_turns += (cost is None) - (stored.cost_microusd is None)
    session.save(update_fields=["output_tokens", "cost_microusd", "unpriced_turns"])
    rows.update(
        output_tokens=call.usage.output_tokens,
        output_reported=None,
        cost_microusd=cost,
        first_token_ms=call.first_token_ms,
        duration_ms=call.duration_ms,
    )
    rollups_invalidate(session.pk)


#: The fields that `usage_count` changes.
COUNTERS = (*USAGE_COUNTS, "last_prompt_tokens", "peak_prompt_tokens", "cost_microusd", "unpriced_turns")


def usage_count(session: AgentSession, usage: Usage, *, cost_microusd: int | None, is_last: bool) -> None:
    """Add a call to the counters of a session, without saving it. `is_last` if no later call is stored."""
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
