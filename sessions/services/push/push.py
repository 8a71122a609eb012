"""Push: a turn becomes rows. The hot path of the product, so it is SQL, and constant in the history.

Usually one statement, and so one round trip: what is needed to decide is known from the push before
(`push_states.py`), and the statement writes turn, messages and counters only if nobody changed the session
since. Where somebody did, or something fires, the same is done in a transaction that locks the session
first. Tokens are counted before either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from django.db import IntegrityError, connection, transaction

import pricing
from compaction.breakdown import TokenBreakdown
from compaction.messages import Usage
from compaction.meter import Calibration
from compaction.triggers import Trigger as DueTrigger
from pricing.custom import custom_cost
from sessions.services.blobs import contents_large, contents_put
from sessions.services.push.rows import preamble_parameters, write_parameters
from sessions.services.push.statements import LOCK, READ, WRITE, WRITE_ANSWER, WRITE_PREAMBLE
from sessions.services.push.states import state_after, state_forget, state_known, state_of, state_remember
from sessions.services.push.values import Push, Pushed, SessionState
from sessions.store import bodies
from sessions.store.blobs import is_external
from sessions.store.postgres import execute, raw_connection


class SessionGone(LookupError):
    """No such session in the project of the key, or the key no longer lives."""


class StaleTurn(Exception):
    """Another writer came first. `next_turn` is the index that the next push will get."""

    def __init__(self, next_turn: int) -> None:
        super().__init__(f"the session's next turn is {next_turn}")
        self.next_turn = next_turn


class KeyReused(Exception):
    """The idempotency key was used in this session, with another body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The push had been stored before: the answer that it got then."""

    answer: bytes


class Trigger(Protocol):
    """What a push may set off (see `services/triggers.py`)."""

    def due(self, pushed: Pushed) -> DueTrigger | None:
        """Whether something fires that has to act at once. Reads nothing."""

    def act(self, pushed: Pushed, due: DueTrigger) -> Fired:
        """Acts, within the transaction of the push."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """What fired, for the answer, and the size of the prompt behind it."""

    told: Sequence[Mapping[str, Any]] = ()
    shown: TokenBreakdown


#: The answer's JSON, from what was stored and what fired.
Answer = Callable[[Pushed, Fired], Mapping[str, Any]]


def turn_push(
    *, key_id: UUID, project_id: UUID, session_id: UUID, push: Push, trigger: Trigger, answer: Answer
) -> bytes | Replayed:
    """Stores a turn, lets the trigger act, and answers the JSON that `answer` makes; all or nothing.

    Raises `SessionGone`, `StaleTurn`, `KeyReused`; then nothing is stored.
    """
    asked = {
        "key": key_id,
        "project": project_id,
        "session": session_id,
        "idempotency_key": push.idempotency_key,
    }
    large = contents_large(message.data for message in push.messages) if is_external() else {}
    if not large:
        return _attempt(asked, push, trigger, answer)
    with transaction.atomic():
        contents_put(project_id, large)  # before the session is locked: a store may be slow
        return _attempt(asked, push, trigger, answer)


def _attempt(asked: Mapping[str, Any], push: Push, trigger: Trigger, answer: Answer) -> bytes | Replayed:
    # A transaction that is open already may change the row again without a new version of it.
    if not connection.in_atomic_block:
        with connection.wrap_database_errors:
            if (body := _push_if_unchanged(asked, push, trigger, answer)) is not None:
                return body
    try:
        return _push_locked(asked, push, trigger, answer)
    except (IntegrityError, StaleTurn) as error:
        if push.idempotency_key is None or not _may_be_twin(error):
            raise
        # The same push may have come twice at once, and the other one been first: while this one waited
        # for the lock its statement could not see the other's turn, but a new one can.
        return _push_locked(asked, push, trigger, answer)


def _may_be_twin(error: IntegrityError | StaleTurn) -> bool:
    return isinstance(error, StaleTurn) or "turn_idempotency_key" in str(error)


def _push_if_unchanged(
    asked: Mapping[str, Any], push: Push, trigger: Trigger, answer: Answer
) -> bytes | None:
    """The usual case, without a lock: decides upon the session as this process last saw it, and writes only
    if it still is so. None where it is not, or more is to be done than write a turn; then nothing is stored.
    """
    raw = raw_connection()
    state = state_known(asked["session"])
    if state is None:
        row = execute(raw, READ, asked).fetchone()
        if row is None or row[-1] is not None:
            return None
        state = state_of(row)
    if push.expected_turn is not None and push.expected_turn != state.turn_count:
        return None
    pushed = _pushed(state, push)
    if trigger.due(pushed) is not None or pushed.preamble_version != state.preamble_version:
        return None
    body = bodies.json_bytes(answer(pushed, Fired(shown=pushed.shown)))
    parameters = write_parameters(pushed, push, key_id=asked["key"], answer=body)
    version = execute(raw, WRITE, parameters).fetchone()
    if version is None:
        state_forget(state.id)
        return None
    state_remember(state_after(pushed, push, version=version[0]))
    return body


def _push_locked(asked: Mapping[str, Any], push: Push, trigger: Trigger, answer: Answer) -> bytes | Replayed:
    """Whatever the case, with the session's row locked, in one transaction within which the trigger acts."""
    state_forget(asked["session"])
    with transaction.atomic():
        raw = raw_connection()
        with connection.wrap_database_errors:
            decided = _decide(execute(raw, LOCK, asked).fetchone(), push)
            if isinstance(decided, Replayed):
                return decided
            execute(raw, WRITE, write_parameters(decided, push, key_id=asked["key"], answer=None))
            if push.preamble is not None and decided.preamble_version != decided.session.preamble_version:
                execute(raw, WRITE_PREAMBLE, preamble_parameters(decided, push.preamble))
        due = trigger.due(decided)
        fired = trigger.act(decided, due) if due is not None else Fired(shown=decided.shown)
        body = bodies.json_bytes(answer(decided, fired))
        if push.idempotency_key is not None:
            with connection.wrap_database_errors:
                execute(raw, WRITE_ANSWER, [body, decided.session.id, decided.turn])
        return body


def _decide(row: Sequence[Any] | None, push: Push) -> Pushed | Replayed:
    if row is None:
        raise SessionGone
    if row[-1] is not None:
        if row[-2] != push.body_hash:
            raise KeyReused(push.idempotency_key)
        return Replayed(answer=row[-1])
    state = state_of(row)
    if push.expected_turn is not None and push.expected_turn != state.turn_count:
        raise StaleTurn(state.turn_count)
    return _pushed(state, push)


def _pushed(session: SessionState, push: Push) -> Pushed:
    """What the turn makes of the session."""
    first = session.message_count
    values = [
        replace(message.value, position=first + index, turn=session.turn_count)
        for index, message in enumerate(push.messages)
    ]
    model, usage, cost = push.model or session.model, push.usage, None
    if usage is not None:
        cost = _cost(model, usage, push)
    context, shown, preamble = session.context, session.shown, session.preamble_version
    if push.preamble is not None and push.preamble.hash != session.preamble_hash:
        sizes = {"system": push.preamble.system_tokens, "tools": push.preamble.tools_tokens}
        context, shown, preamble = context.set(**sizes), shown.set(**sizes), preamble + 1
    served = shown.prompt_of(values)
    return Pushed(
        session=session,
        turn=session.turn_count,
        first_position=first,
        model=model,
        cost_microusd=cost,
        calibration=_calibration(session, served, usage),
        values=values,
        asked=context.prompt_of(values),
        served=served,
        shown=shown.add(values),
        context=context.add(values),
        seam=session.seam.after(values, session.format),
        preamble_version=preamble,
    )


def _cost(model: str, usage: Usage, push: Push) -> int | None:
    if push.prices:
        agreed = custom_cost(push.prices, model, usage, datetime.now(UTC).date())
        if agreed is not None:
            return agreed
    return pricing.price(model, usage, cache_write_1h_tokens=push.cache_write_1h_tokens).microusd


def _calibration(session: SessionState, served: TokenBreakdown, usage: Usage | None) -> float:
    """Our count against the provider's, of the prompt that the turn's call read."""
    if usage is None:
        return session.calibration
    reports = session.turn_count if session.calibration != 1 else 0
    known = Calibration(ratio=session.calibration, reports=reports)
    return known.updated(estimated=served.total, reported=usage.prompt_tokens).ratio
