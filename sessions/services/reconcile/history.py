"""Reconcile a session with the complete history that its client sends.

The client stores its history and sends all of it with each call. New messages become a turn, by the same path
as a push. If the client went back to an earlier point, the history continues in a fork; if it compacted its
context, the same messages are removed from the prompt; a side request changes neither.

Appending to a history takes constant time: the last request's bytes are recognized by their hash, and the
stored messages by a digest, so neither is read again. `append` does it with one statement where possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.selectors import GIVEN_KEY_IS_VALID
from compaction.capabilities import capabilities_of
from compaction.histories import Change
from compaction.identity import history_digest
from sessions.models import AgentSession, ClientHistory, Turn
from sessions.models.session import RECORDED
from sessions.services.calls.match import CallIdentity, family_of, turn_pushed, turns_by_id
from sessions.services.calls.remove import call_take
from sessions.services.compactions.thinking import thinking_clear
from sessions.services.prompts.served import served_prompt_correct
from sessions.services.push.recorded import with_usage_of
from sessions.services.push.session_state import state_forget
from sessions.services.push.turns import KeyReused, SessionGone, turn_push_locked
from sessions.services.push.values import Target
from sessions.services.reconcile.branches import side_session_create
from sessions.services.reconcile.client_edits import context_remove
from sessions.services.reconcile.continued import REFERENCES, history_continued, references_resolved
from sessions.services.reconcile.known_messages import (
    is_known,
    known_call_store,
    without_reported_usage,
    without_stored_usage,
)
from sessions.services.reconcile.matching import Matched, histories_of, history_match
from sessions.services.reconcile.new_turn import push_of
from sessions.services.reconcile.points import points_save
from sessions.services.reconcile.reading import Reading, history_read, with_answers
from sessions.services.reconcile.rewrites import history_rewrite, spans_kept
from sessions.services.reconcile.stored import history_save, positions
from sessions.services.reconcile.values import InvalidHistory, Reconciled, Request, Sent, Status
from sessions.store import bodies

#: A plain query, because Django takes 0.5 ms to build it. It also checks the API key. The lock excludes other
#: writers only: at its commit, a writer of a fork that this one waits for may check that its parent exists.
_LOCK = f"""
SELECT s.* FROM agent_sessions_agentsession s
 WHERE s.id = %(session)s AND s.project_id = %(project)s
   AND {GIVEN_KEY_IS_VALID}
   FOR NO KEY UPDATE OF s
"""  # noqa: S608  a constant is inserted


@transaction.atomic
def history_reconcile(target: Target, request: Request) -> Reconciled:
    """Store the new part of a client's history. `target` is the session that the client names.

    Raises `SessionGone`, `KeyReused`, `InvalidHistory`, `UnknownResponse`, `BadJson` or the errors of
    `request.read`; nothing is stored then.
    """
    own = {"key": target.key_id, "session": target.session_id, "project": target.project_id}
    rows = AgentSession.objects.raw(_LOCK, own)
    root = next(iter(rows), None)
    if root is None:
        raise SessionGone
    histories = histories_of(root)
    if (done := _stored_before(histories, request) or _imported_before(root, request)) is not None:
        return done
    taken = _taken(root, request.call)
    if request.call is not None and taken is not None:
        request = replace(request, call=_with_id(request.call, taken))
        histories = histories_of(root)
    reading = _reading(histories, request)
    sent = request.read(reading.fields)
    if taken is not None:
        sent = replace(sent, push=with_usage_of(sent.push, taken))
    if reading.count == 0 and request.call is None and request.continued is None:
        raise InvalidHistory(None, "`messages` must be an array with at least one message.")
    reading = with_answers(reading, sent.answers)
    matched = history_match(histories, reading, sent)
    if request.call is not None and is_known(matched, reading, sent):
        return known_call_store(request, sent, reading, matched, request.call)
    return _store(root, target, request, sent, reading, matched)


def _store(
    root: AgentSession, target: Target, request: Request, sent: Sent, reading: Reading, matched: Matched
) -> Reconciled:
    """Store what is new in a history in the session that it belongs to."""
    match matched.comparison.change:
        case Change.EXTENDED | Change.EDITED | Change.OMITTED | Change.REPLACED | Change.DISCARDED:
            rewritten = history_rewrite(matched, is_served=sent.is_served)
            return _append(target, request, sent, reading, rewritten, Status.APPENDED)
        case Change.TRIMMED | Change.COMPACTED | Change.REWRITTEN:
            return _compacted(target, request, sent, reading, matched)
        case Change.SIDE:
            beside = side_session_create(parent=root)
            history = ClientHistory(session=beside, root=root, spans=[[0, None]], digest=history_digest(()))
            aside = replace(matched, session=beside, history=history)
            return _append(target, request, sent, reading, aside, Status.SIDE)
        case Change.DIVERGED:
            rewritten = history_rewrite(matched, is_served=sent.is_served)
            return _forked(target, request, sent, reading, rewritten)


def _reading(histories: Sequence[ClientHistory], request: Request) -> Reading:
    """Parse the history of a request, with what the provider adds to it."""
    known = histories if request.continued is None else ()
    reading = history_read(request.body, histories=known, redaction=request.redaction)
    if request.continued is not None:
        reading = history_continued(histories, request.continued, reading)
    return references_resolved(histories, reading) if REFERENCES in request.body else reading


def _stored_before(histories: Sequence[ClientHistory], request: Request) -> Reconciled | None:
    """Return the result of the same request, if it was stored before."""
    if request.idempotency_key is None:
        return None
    ids = [history.pk for history in histories]
    turn = Turn.objects.filter(session__in=ids, idempotency_key=request.idempotency_key).first()
    if turn is None:
        return None
    # The key of a call identifies it; its sources may report it with different bodies.
    if request.call is None and bytes(turn.body_hash or b"") != request.body_hash:
        raise KeyReused(request.idempotency_key)
    return Reconciled(status=Status.UNCHANGED, session_id=turn.session_id, first=0, turn=turn.index)


def _imported_before(root: AgentSession, request: Request) -> Reconciled | None:
    """Return the result of a call whose log was imported, or that was pushed, before it was recorded."""
    if request.call is None or (root.origin in RECORDED and not root.push_position):
        return None
    turns = turns_by_id(project_id=root.project_id, calls=[request.call]).filter(message_count__gt=0)
    turn = turns.first() or turn_pushed(request.call, session=root)
    if turn is None:
        return None
    return Reconciled(status=Status.UNCHANGED, session_id=turn.session_id, first=0, turn=turn.index)


def _taken(root: AgentSession, call: CallIdentity | None) -> Turn | None:
    """Remove the turn without messages that telemetry reported for a call, and return it.

    Returns None if there is none.
    """
    if call is None:
        return None
    taken = call_take(call, project_id=root.project_id, family=family_of(root))
    if taken is not None:
        root.refresh_from_db()
    return taken


def _with_id(call: CallIdentity, taken: Turn) -> CallIdentity:
    """Return the call with the id that telemetry reported for it, unless it has one."""
    is_response = taken.request_id == call.response_id  # a log without request ids was first
    return replace(call, request_id=call.request_id or ("" if is_response else taken.request_id or ""))


def _append(
    target: Target, request: Request, sent: Sent, reading: Reading, matched: Matched, status: Status
) -> Reconciled:
    """Store the messages from `matched.comparison.new` on as a turn, and update the client's history."""
    session, history, new = matched.session, matched.history, matched.comparison.new
    push, preamble_hash = push_of(request, sent, reading, history, first=new, format=session.format)
    push = without_stored_usage(push, matched)
    if request.call is not None:
        push = without_reported_usage(push, request.call, project_id=target.project_id)
    turn: int | None = None
    if push.messages or push.preamble is not None:
        source = sent.prompt_source
        if source is not None and source.session_id == session.pk:
            served_prompt_correct(session, turn=session.turn_count, compaction=source.compaction)
        own = replace(target, session_id=session.pk)
        answer = turn_push_locked(own, push)
        assert isinstance(answer, bytes)  # the key was not stored before
        turn = bodies.json_value(answer)["turn"]
        state_forget(session.pk)
    else:
        preamble_hash = bytes(history.preamble_hash)
        status = Status.UNCHANGED if status is Status.APPENDED else status
    if request.continued is not None and request.continued.conversation:
        history.conversation = request.continued.conversation
    _history_write(history, reading, matched, status, preamble_hash, sent)
    return Reconciled(
        status=status,
        session_id=session.pk,
        first=new,
        turn=turn,
        redacted=push.redacted,
        history=history if session.pk == history.root_id else None,
    )


def _forked(target: Target, request: Request, sent: Sent, reading: Reading, matched: Matched) -> Reconciled:
    """Append the rest of a history to the fork that it continues.

    The fork had no prompt yet, so a client that fetches its prompts has got the answers in the rest, and
    their thinking, from another one.
    """
    fork = matched.session
    first, is_bound = fork.message_count, capabilities_of(sent.push.model or fork.model).bound_thinking
    result = _append(target, request, sent, reading, matched, Status.FORKED)
    if is_bound and sent.is_served:
        thinking_clear(fork.pk, first=first, reason="the model answered another prompt")
    return result


def _history_write(
    history: ClientHistory,
    reading: Reading,
    matched: Matched,
    status: Status,
    preamble_hash: bytes,
    sent: Sent,
) -> None:
    if status is Status.SIDE:
        history.count = reading.count - matched.comparison.new
        history.digest = history_digest(reading.hashes[matched.comparison.new - reading.first :])
    else:
        reading.apply_to(history)
    history.preamble_hash, history.updated_at = preamble_hash, timezone.now()
    history.caller = sent.caller
    history_save(history)
    if sent.caller is not None and not sent.is_named and status is not Status.SIDE:
        points_save(history, reading, answers=len(sent.answers))


def _compacted(
    target: Target, request: Request, sent: Sent, reading: Reading, matched: Matched
) -> Reconciled:
    """Remove the messages from the prompt that the client removed, and append their replacements."""
    session, history, comparison = matched.session, matched.history, matched.comparison
    session.refresh_from_db(from_queryset=AgentSession.objects.select_for_update())
    at = positions(history, session.message_count)
    kept_from = comparison.kept if comparison.change is Change.TRIMMED else len(at)
    before, turn = session.last_prompt_tokens, session.turn_count
    removed = at[comparison.common : kept_from]
    context_remove(session=session, positions=removed, is_served=sent.is_served)
    history.spans = spans_kept([*at[: comparison.common], *at[kept_from:]], session.message_count)
    result = _append(target, request, sent, reading, matched, Status.COMPACTED)
    marker: Mapping[str, Any] = {"trigger": "auto", "tokens_before": before}
    Turn.objects.filter(session=session, index=turn).update(client_compaction=marker)
    return result
