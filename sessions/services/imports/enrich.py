"""Add what a log knows to a session that another source recorded: facts, and calls that it missed."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db.models import Max

from compaction.identity import canonical
from compaction.messages import Role
from importers.base import ImportedSession
from sessions.models import AgentSession, Turn, TurnSource
from sessions.models.session import GATEWAY, PUSHED
from sessions.selectors.transcripts.rows import messages_load, spans_of
from sessions.services.calls.match import CallIdentity, family_of, has_usage, turns_by_id
from sessions.services.calls.store import ReportedCall, call_append, call_complete
from sessions.services.imports.find import ImportConflictError
from sessions.services.imports.prepare import PreparedSession, PreparedTurn
from sessions.store import bodies


def is_recorded(session: AgentSession) -> bool:
    """Return whether a source other than a log has stored messages of the session."""
    turns = session.turns.filter(message_count__gt=0).exclude(source=TurnSource.LOG)
    return session.origin in (GATEWAY, PUSHED) or turns.exists()


def session_enrich(session: AgentSession, prepared: PreparedSession) -> bool:
    """Enrich the locked session. Return whether calls or their usage were added.

    The messages of an added call are part of the history that the agent sent with a later call, so they are
    not stored again. Raises `ImportConflictError` if what an agent pushed to the session is not in the log.
    """
    calls = [turn for turn in prepared.turns if turn.usage is not None]
    missing, known = _compared(session, calls)
    silent = [turn for turn in prepared.turns if turn.usage is None]
    answered = _with_answers(session, [*missing, *silent], known)
    known += [stored for _, stored in answered]
    missing = [turn for turn in missing if all(turn is not each for each, _ in answered)]
    if not _is_stored(session, prepared) and _is_unrelated(session, missing, known):
        is_pushed = session.origin == PUSHED
        how = "pushed over the API, not imported" if is_pushed else "continued over the API"
        raise ImportConflictError(f"session {prepared.facts.external_id} was {how}")
    completed = [turn for turn, stored in answered if _answer_complete(stored, turn)]
    session.refresh_from_db()
    _facts_add(session, prepared.facts)
    for turn in missing:
        call_append(session, _call(session, turn))
    return bool(missing or completed)


def _facts_add(session: AgentSession, facts: ImportedSession) -> None:
    """Add the metadata of the log, and its title and tags unless a user has set those of the session."""
    if not session.keeps_labels:
        session.title = facts.title[:300] or session.title
        session.tags = list(dict.fromkeys([*session.tags, *(tag[:100] for tag in facts.tags)]))
    session.metadata = {**session.metadata, **facts.metadata}
    session.save(update_fields=["title", "tags", "metadata"])


def _is_stored(session: AgentSession, prepared: PreparedSession) -> bool:
    """Return whether the session was imported from this log, in this or a later state."""
    if session.origin in (GATEWAY, PUSHED):
        return False
    imported = session.turns.filter(message_count__gt=0, source=TurnSource.LOG).count()
    return sum(bool(turn.messages) for turn in prepared.turns) <= imported


def _is_unrelated(session: AgentSession, missing: Sequence[PreparedTurn], known: Sequence[Turn]) -> bool:
    """Return whether the log has none of the recorded calls, and new ones or no calls at all."""
    if session.origin == GATEWAY or any(turn.source != TurnSource.LOG for turn in known):
        return False
    recorded = session.turns.filter(message_count__gt=0, source=TurnSource.GATEWAY)
    return bool(missing or not known) and not recorded.exists()


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


def _with_answers(
    session: AgentSession, turns: Sequence[PreparedTurn], known: Collection[Turn]
) -> list[tuple[PreparedTurn, Turn]]:
    """Return each call whose answer ends a pushed turn, with that turn. Skips the turns in `known`.

    Earlier answers in a turn belong to other calls.
    """
    found = []
    matched = {(turn.session_id, turn.index) for turn in known}
    pushed = _pushed_answers(session) if turns else []
    pushed = [(answer, turn) for answer, turn in pushed if (turn.session_id, turn.index) not in matched]
    for turn in turns:
        answer = _answer(turn)
        at = next((index for index, (each, _) in enumerate(pushed) if each == answer), None)
        if answer is not None and at is not None:
            found.append((turn, pushed.pop(at)[1]))
    return found


def _answer_complete(stored: Turn, turn: PreparedTurn) -> bool:
    """Store the usage and the ids of a call in its pushed turn. Return whether the turn had no usage."""
    if stored.prompt_reported is not None or turn.usage is None:
        return False
    stored.response_id = stored.response_id or turn.response_id
    stored.request_id = stored.request_id or turn.request_id
    stored.save(update_fields=["response_id", "request_id"])
    call_complete(stored, usage=turn.usage, cost_microusd=turn.cost_microusd, model=turn.model)
    return True


def _pushed_answers(session: AgentSession) -> list[tuple[bytes, Turn]]:
    """Return the last answer in each pushed turn, without its formatting, and the turn."""
    pushed = {turn.index: turn for turn in session.turns.filter(source=TurnSource.PUSH)}
    answers = session.messages.filter(role=Role.ASSISTANT.value, turn_index__in=list(pushed))
    last = answers.values("turn_index").annotate(last=Max("position")).values_list("last", flat=True)
    rows = messages_load(session.pk, spans_of(sorted(last)))
    return [(canonical(bodies.json_value(row.data)), pushed[row.turn]) for row in rows]


def _answer(turn: PreparedTurn) -> bytes | None:
    """Return the last answer of a call, without its formatting, or None."""
    answers = [message for message in turn.messages if message.value.role is Role.ASSISTANT]
    return canonical(bodies.json_value(answers[-1].data)) if answers else None
