"""Add what a log knows to a session that the gateway recorded: facts, and calls that bypassed it."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.models import AgentSession, Turn
from sessions.services.calls.append import ReportedCall, call_append
from sessions.services.calls.match import family_of, turn_with_usage, turns_by_id
from sessions.services.calls.values import CallIdentity
from sessions.services.imports.prepare import PreparedSession, PreparedTurn


def session_enrich(session: AgentSession, prepared: PreparedSession) -> bool:
    """Enrich the locked session. Return whether calls were added.

    The messages of an added call are part of the history that the agent sent with a later call, so they are
    not stored again.
    """
    facts = prepared.facts
    if not session.keeps_labels:
        session.title = facts.title[:300] or session.title
        session.tags = list(dict.fromkeys([*session.tags, *(tag[:100] for tag in facts.tags)]))
    session.metadata = {**session.metadata, **facts.metadata}
    session.save(update_fields=["title", "tags", "metadata"])
    missing = _missing(session, [turn for turn in prepared.turns if turn.usage is not None])
    for turn in missing:
        call_append(session, _call(session, turn))
    return bool(missing)


def _missing(session: AgentSession, turns: Sequence[PreparedTurn]) -> list[PreparedTurn]:
    """Return the calls that are not stored. Calls that are found by their usage get their ids."""
    calls = [_identity(session, turn) for turn in turns]
    rows = turns_by_id(project_id=session.project_id, calls=calls).values_list("request_id", "response_id")
    known = {id for pair in rows for id in pair if id}
    family, missing = family_of(session), []
    for turn, call in zip(turns, calls, strict=True):
        if {call.request_id, call.response_id} & known:
            continue
        found = turn_with_usage(call, family=family, with_messages=True)
        if found is None:
            missing.append(turn)
            continue
        session_id, index = found
        ids = {"request_id": call.request_id or call.response_id, "response_id": call.response_id or None}
        Turn.objects.filter(session_id=session_id, index=index).update(**ids)
    return missing


def _identity(session: AgentSession, turn: PreparedTurn) -> CallIdentity:
    return CallIdentity(
        at=turn.at or session.started_at,
        usage=turn.usage,
        request_id=turn.request_id or "",
        response_id=turn.response_id or "",
    )


def _call(session: AgentSession, turn: PreparedTurn) -> ReportedCall:
    at = turn.at or session.started_at
    return ReportedCall(
        at=at,
        request_id=turn.request_id or turn.response_id or f"log:{at.isoformat()}",
        response_id=turn.response_id,
        model=turn.model,
        usage=turn.usage,
        cost_microusd=turn.cost_microusd,
    )
