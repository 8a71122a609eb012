"""Add what a log knows to a session that another source recorded: facts, and calls that it missed."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.models import AgentSession, Turn, TurnSource
from sessions.models.session import GATEWAY, PUSHED
from sessions.services.calls.append import ReportedCall, call_append
from sessions.services.calls.match import family_of, has_usage, turns_by_id
from sessions.services.calls.values import CallIdentity
from sessions.services.imports.answers import answer_complete, turns_with_answers
from sessions.services.imports.find import ImportConflictError
from sessions.services.imports.prepare import PreparedSession, PreparedTurn


def is_recorded(session: AgentSession) -> bool:
    """Return whether another source than a log has stored messages of the session."""
    turns = session.turns.filter(message_count__gt=0).exclude(source=TurnSource.LOG)
    return session.origin in (GATEWAY, PUSHED) or turns.exists()


def session_enrich(session: AgentSession, prepared: PreparedSession) -> bool:
    """Enrich the locked session. Return whether calls or their usage were added.

    The messages of an added call are part of the history that the agent sent with a later call, so they are
    not stored again. Raises `ImportConflictError` if what an agent pushed to the session is not in the log.
    """
    facts, calls = prepared.facts, [turn for turn in prepared.turns if turn.usage is not None]
    missing, known = _compared(session, calls)
    silent = [turn for turn in prepared.turns if turn.usage is None]
    answered = turns_with_answers(session, [*missing, *silent], known)
    known += [stored for _, stored in answered]
    missing = [turn for turn in missing if all(turn is not each for each, _ in answered)]
    if not _is_stored(session, prepared) and _is_unrelated(session, missing, known):
        is_pushed = session.origin == PUSHED
        how = "pushed over the API, not imported" if is_pushed else "continued over the API"
        raise ImportConflictError(f"session {facts.external_id} was {how}")
    completed = [turn for turn, stored in answered if answer_complete(stored, turn)]
    session.refresh_from_db()
    if not session.keeps_labels:
        session.title = facts.title[:300] or session.title
        session.tags = list(dict.fromkeys([*session.tags, *(tag[:100] for tag in facts.tags)]))
    session.metadata = {**session.metadata, **facts.metadata}
    session.save(update_fields=["title", "tags", "metadata"])
    for turn in missing:
        call_append(session, _call(session, turn))
    return bool(missing or completed)


def _is_stored(session: AgentSession, prepared: PreparedSession) -> bool:
    """Return whether the session was imported from this log, in this or a later state."""
    if session.origin in (GATEWAY, PUSHED):
        return False
    imported = session.turns.filter(message_count__gt=0, source=TurnSource.LOG).count()
    return sum(bool(turn.messages) for turn in prepared.turns) <= imported


def _is_unrelated(session: AgentSession, missing: Sequence[PreparedTurn], known: Sequence[Turn]) -> bool:
    """Return whether the log has new calls, but none of those that were recorded."""
    if any(turn.source != TurnSource.LOG for turn in known):
        return False
    recorded = session.turns.filter(message_count__gt=0, source=TurnSource.GATEWAY)
    is_empty = not missing and not known
    return session.origin != GATEWAY and (bool(missing) or is_empty) and not recorded.exists()


def _compared(session: AgentSession, turns: Sequence[PreparedTurn]) -> tuple[list[PreparedTurn], list[Turn]]:
    """Return the calls that are not stored, and the stored turns of the others.

    A call is stored under its ids, or with its usage at its time.
    """
    calls = [_identity(session, turn) for turn in turns]
    with_id = list(turns_by_id(project_id=session.project_id, calls=calls))
    ids = {id for turn in with_id for id in (turn.request_id, turn.response_id) if id}
    others = Turn.objects.filter(session_id__in=family_of(session), billed=True).order_by("at")
    others_left = [turn for turn in others if ids.isdisjoint({turn.request_id, turn.response_id})]
    missing, known = [], with_id
    for turn, call in zip(turns, calls, strict=True):
        if {call.request_id, call.response_id} & ids:
            continue
        same = next((each for each in others_left if has_usage(each, call)), None)
        if same is None:
            missing.append(turn)
        else:
            others_left.remove(same)
            known.append(same)
    return missing, known


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
        source=TurnSource.LOG,
    )
