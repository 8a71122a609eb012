"""Add what a log knows to a session that the gateway recorded: facts, and calls that bypassed it."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.models import AgentSession, Turn
from sessions.models.session import PUSHED
from sessions.services.calls.append import ReportedCall, call_append
from sessions.services.calls.match import family_of, has_usage, turns_by_id
from sessions.services.calls.values import CallIdentity
from sessions.services.imports.find import ImportConflictError
from sessions.services.imports.prepare import PreparedSession, PreparedTurn


def session_enrich(session: AgentSession, prepared: PreparedSession) -> bool:
    """Enrich the locked session. Return whether calls were added.

    The messages of an added call are part of the history that the agent sent with a later call, so they are
    not stored again. Raises `ImportConflictError` for a session that an agent pushed, if it has no call of
    the log.
    """
    facts, calls = prepared.facts, [turn for turn in prepared.turns if turn.usage is not None]
    missing = _missing(session, calls)
    if session.origin == PUSHED and len(missing) == len(calls):
        raise ImportConflictError(f"session {facts.external_id} was pushed over the API, not imported")
    if not session.keeps_labels:
        session.title = facts.title[:300] or session.title
        session.tags = list(dict.fromkeys([*session.tags, *(tag[:100] for tag in facts.tags)]))
    session.metadata = {**session.metadata, **facts.metadata}
    session.save(update_fields=["title", "tags", "metadata"])
    for turn in missing:
        call_append(session, _call(session, turn))
    return bool(missing)


def _missing(session: AgentSession, turns: Sequence[PreparedTurn]) -> list[PreparedTurn]:
    """Return the calls that are not stored: neither under their ids, nor with their usage at their time."""
    calls = [_identity(session, turn) for turn in turns]
    rows = turns_by_id(project_id=session.project_id, calls=calls).values_list("request_id", "response_id")
    known = {id for pair in rows for id in pair if id}
    stored = list(Turn.objects.filter(session_id__in=family_of(session), billed=True).order_by("at"))
    stored = [turn for turn in stored if known.isdisjoint({turn.request_id, turn.response_id})]
    missing = []
    for turn, call in zip(turns, calls, strict=True):
        if {call.request_id, call.response_id} & known:
            continue
        same = next((each for each in stored if has_usage(each, call)), None)
        if same is None:
            missing.append(turn)
        else:
            stored.remove(same)
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
