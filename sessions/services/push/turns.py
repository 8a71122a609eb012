"""Push a turn. This is the hot path: plain SQL, in constant time regardless of the session's length.

Usually a push takes one statement and one round trip. The process has cached the session's state since the
previous push (see `session_state`), and the statement writes the turn, messages and counters only if the
session has not changed since. If it has changed, or a compaction is triggered, the push runs in a transaction
that locks the session first.

`turn_push_direct` is the same single statement for the event loop of the web server (see `contextapp.web`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from msgspec.structs import replace

from sessions.models import AgentSession, Turn, TurnSource
from sessions.services.blobs import contents_large, contents_put
from sessions.services.commits import after_commit
from sessions.services.compactions.lifecycle import compaction_supersede
from sessions.services.compactions.preparation import preparations
from sessions.services.push.answer import answer_json
from sessions.services.push.compacted import (
    CompactedTurn,
    compaction_count,
    compaction_report,
    plan_boundary,
    turn_compacted,
    turn_compacted_ready,
)
from sessions.services.push.compute import turn_compute
from sessions.services.push.eligibility import is_stale, turn_eligible
from sessions.services.push.parameters import write_parameters
from sessions.services.push.preambles import preamble_store
from sessions.services.push.recorded import recorded_answer, recorded_find, report_take
from sessions.services.push.session_state import (
    calibrated,
    reads_calibration,
    row_lock,
    row_read,
    state_after,
    state_cached,
    state_forget,
    state_from_row,
    state_read,
    state_reload,
    state_remember,
)
from sessions.services.push.spikes import spike_count, spike_report
from sessions.services.push.statements import WRITE, WRITE_COMPACTED, WRITE_LARGE, WRITE_SPIKE
from sessions.services.push.triggers import Triggered, trigger_evaluate, trigger_possible, triggers_run
from sessions.services.push.values import NewTurn, Push, Replayed, Target
from sessions.store.blobs import is_external
from sessions.store.loop_connections import LoopConnections, NotConnected
from sessions.store.postgres import row_fetch
from sessions.store.prepared import Prepared


class SessionGone(LookupError):
    """The project has no such session, or the API key has expired or was revoked."""


class StaleTurn(Exception):
    """The push expects another turn than `next_turn`, usually because another writer pushed first."""

    def __init__(self, next_turn: int) -> None:
        super().__init__(f"the session's next turn is {next_turn}. Fetch the prompt again before you push")


class KeyReused(Exception):
    """The idempotency key was used in this session with a different body."""


def turn_push(target: Target, push: Push) -> bytes | Replayed:
    """Store a turn, run the compactions that it triggers, and return the JSON response.

    Raises `SessionGone`, `StaleTurn` or `KeyReused`; nothing is stored then.
    """
    large = contents_large(push.messages) if is_external() else {}
    if not large:
        return _store(target, push)
    with transaction.atomic():
        contents_put(target.project_id, large)  # before the session is locked: object storage may be slow
        return _store(target, push)


def _store(target: Target, push: Push) -> bytes | Replayed:
    if connection.in_atomic_block:  # the row may change again without a new version
        return _store_locked(target, push)
    answer = _store_if_unchanged(target, push)
    if answer is not None:
        return answer
    stored = _store_locked(target, push)
    state_reload(target, push)
    return stored


def _store_if_unchanged(target: Target, push: Push) -> bytes | None:
    """Store a turn that triggers nothing, in one statement and without a lock.

    Returns None and stores nothing if the session has changed or the push needs further statements.
    """
    state = state_cached(target.session_id) or state_read(target, push)
    turn = turn_eligible(state, push) if state is not None else None
    if turn is None:
        return None
    trigger = trigger_evaluate(turn)
    boundary = plan_boundary(turn, push, trigger)
    if boundary is not None:
        preparations.wait(turn.session.id, boundary)
    elif trigger is not None:
        return None
    write = _write_unlocked(turn, push, target, boundary)
    return _remember(turn, push, write, _execute(write)) if write is not None else None


async def turn_push_direct(connections: LoopConnections, target: Target, push: Push) -> bytes | None:
    """Store a turn like `_store_if_unchanged`, on an event loop and only if nothing has to be read first.

    Returns None and stores nothing if `turn_push` has to store the turn. After one of psycopg's errors, the
    turn may have been stored.
    """
    state = state_cached(target.session_id)
    if state is None or reads_calibration(state, push) or (turn := turn_eligible(state, push)) is None:
        return None
    trigger = trigger_possible(turn)
    boundary = plan_boundary(turn, push, trigger)
    if boundary is not None:
        await preparations.wait_async(turn.session.id, boundary)
    elif trigger is not None:
        return None
    write = _write_unlocked(turn, push, target, boundary)
    if write is None:
        return None
    try:
        row = await connections.fetch_row(write.statement, write.statement.encode(write.parameters))
    except NotConnected:
        return None
    version = row[0] if row is not None else None
    return _remember(turn, push, write, version.decode() if version is not None else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """The statement that stores a turn, with the prepared compaction that it triggers, if any."""

    statement: Prepared
    parameters: Mapping[str, Any]
    answer: bytes
    compacted: CompactedTurn | None


def _write_unlocked(turn: NewTurn, push: Push, target: Target, boundary: int | None) -> _Write | None:
    """Return the statement for a turn, or None if it triggers a compaction that is not ready."""
    compacted = turn_compacted_ready(turn, boundary) if boundary is not None else None
    if boundary is not None and compacted is None:
        return None
    return _write_of(turn, push, target, compacted)


def _write_of(
    turn: NewTurn, push: Push, target: Target, compacted: CompactedTurn | None, *, is_locked: bool = False
) -> _Write:
    """Return the statement for a turn.

    If the session is locked, the caller has checked the ids of the call and reports the turn to webhooks.
    """
    stored = turn if compacted is None else compacted.turn
    compactions = [] if compacted is None else [compacted.compaction]
    answer = answer_json(stored, push, shown=stored.shown, compactions=compactions)
    parameters = write_parameters(stored, push, target, answer=answer, is_new_call=is_locked)
    if compacted is not None:
        statement = WRITE_COMPACTED
        parameters |= compacted.parameters
    elif turn.spike is not None and not is_locked:
        statement = WRITE_SPIKE
    else:
        statement = WRITE_LARGE if parameters["blob_ids"] else WRITE
    return _Write(statement=statement, parameters=parameters, answer=answer, compacted=compacted)


def _execute(write: _Write) -> str | None:
    """Execute the statement. Return the version of the session's row, or None if nothing was written."""
    row = row_fetch(write.statement, write.parameters)
    return row[0] if row is not None else None


def _remember(turn: NewTurn, push: Push, write: _Write, version: str | None) -> bytes | None:
    """Cache the session's state after the turn, and return the answer; None if nothing was written."""
    session_id, compacted = turn.session.id, write.compacted
    if version is None:
        state_forget(session_id)
        return None
    spike_count(turn)
    if compacted is None:
        state_remember(state_after(turn, push, version=version))
        if turn.plan_turn == turn.index:
            preparations.request(session_id, turn.index)
    else:
        state = state_after(compacted.turn, push, version=version)
        fired_tokens = compacted.parameters["fired_tokens"]
        state_remember(replace(state, fired_tokens=fired_tokens, fired_turn=turn.index + 1))
        preparations.forget(session_id)
        compaction_count(compacted.compaction)
    return write.answer


def turn_push_locked(target: Target, push: Push) -> bytes | Replayed:
    """Store a turn like `turn_push`, in the transaction of a caller that has locked the session.

    After an error, the caller rolls the transaction back.
    """
    large = contents_large(push.messages) if is_external() else {}
    if large:
        contents_put(target.project_id, large)
    return _store_locked(target, push, savepoint=False)


def _store_locked(target: Target, push: Push, *, savepoint: bool = True) -> bytes | Replayed:
    """Lock the session and store the part of a push that is not stored yet, in one transaction."""
    state_forget(target.session_id)
    with transaction.atomic(savepoint=savepoint):
        row = row_lock(target, push)
        if row is None:
            raise SessionGone
        if row.answer is not None:
            return _replayed(row, push)
        state = state_from_row(row)
        recorded = recorded_find(state, push) if push.source is TurnSource.PUSH else None
        if recorded is not None and recorded.count == len(push.messages):
            return recorded_answer(state, push, recorded)
        if is_stale(state, push):
            raise StaleTurn(state.turn_count)
        if recorded is not None:
            push = recorded.rest_of(push)
        elif state.has_reports and (taken := report_take(state, push)) is not None:
            push = taken
            state = state_from_row(row_read(target, push))
        return _store_new(target, push, turn_compute(calibrated(state, push), push))


def _replayed(row: Any, push: Push) -> Replayed:
    if row.body_hash != push.body_hash:
        raise KeyReused(push.idempotency_key)
    return Replayed(answer=row.answer)


def _store_new(target: Target, push: Push, turn: NewTurn) -> bytes:
    """Store a new turn of the locked session, run what it triggers, and return the response."""
    compacted = turn_compacted(turn, push)
    if compacted is not None:
        reason = f"superseded by the {compacted.compaction.trigger} trigger"
        compaction_supersede(session=AgentSession(pk=turn.session.id), reason=reason)
    _write_locked(turn, push, target, compacted)
    spike_report(turn)
    if compacted is not None:
        triggered = Triggered(compactions=(compacted.compaction,), shown=compacted.turn.shown)
        compaction_report(compacted.compaction)
    else:
        triggered = triggers_run(turn, push)
    answer = answer_json(turn, push, shown=triggered.shown, compactions=triggered.compactions)
    if push.idempotency_key is not None:
        Turn.objects.filter(session=turn.session.id, index=turn.index).update(answer=answer)
    return answer


def _write_locked(turn: NewTurn, push: Push, target: Target, compacted: CompactedTurn | None) -> None:
    """Write a turn with the session locked. Raises `SessionGone` if the API key has been revoked."""
    if _execute(_write_of(turn, push, target, compacted, is_locked=True)) is None:
        raise SessionGone
    if turn.plan_turn == turn.index:
        after_commit(preparations.request, turn.session.id, turn.index)
    if push.preamble is not None and turn.changes_preamble:
        preamble_store(turn, push.preamble)
