"""The state of a session that a push continues: read, locked, or cached.

Each process caches states, so that a push need not read what the previous push has written. A cached state
may be out of date: the statement that uses it checks the version of the row and writes nothing if the row has
changed. Other processes therefore need not be notified of changes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, LiteralString
from uuid import UUID

from django.db import DatabaseError, InterfaceError
from msgspec.structs import replace
from psycopg.rows import namedtuple_row

from compaction.sizes.breakdown import TokenBreakdown
from sessions.selectors.lookups import Route, route_forget, route_remember
from sessions.selectors.token_budgets import (
    budget_tokens,
    calibration_following,
    calibration_of,
    counts_differently,
    window_after,
)
from sessions.services.push.compute import model_after
from sessions.services.push.parameters import read_parameters
from sessions.services.push.statements import LOCK, READ
from sessions.services.push.values import NewTurn, Push, SessionState, Target
from sessions.store.continuation_columns import continuation_of
from sessions.store.postgres import execute

_states: dict[UUID, SessionState] = {}

#: Cached sessions per process, about 3 KB each.
_SIZE = 5_000


def state_cached(session_id: UUID) -> SessionState | None:
    return _states.get(session_id)


def state_remember(state: SessionState) -> None:
    if len(_states) >= _SIZE:
        _states.clear()
    _states[state.id] = state


def state_forget(session_id: UUID) -> None:
    _states.pop(session_id, None)


def route_refresh(route: Route, *, project_id: UUID, name: str) -> None:
    """Cache the format that a push has detected with the session's route, so that the next push knows it."""
    state = state_cached(route.id)
    if state is None or state.format is None:
        route_forget(project_id=project_id, name=name)
    else:
        detected = Route(id=route.id, format=state.format)
        route_remember(project_id=project_id, name=name, route=detected)


def state_from_row(row: Any) -> SessionState:
    """Build the state from a row of `READ` or `LOCK`."""
    return SessionState(
        version=row.version,
        id=row.id,
        project_id=row.project_id,
        format=row.format,
        model=row.model,
        agent=row.agent,
        turn_count=row.turn_count,
        message_count=row.message_count,
        push_position=row.push_position,
        context=TokenBreakdown(tokens=row.context_components),
        shown=TokenBreakdown(tokens=row.shown_components),
        continuation=continuation_of(open_calls=row.open_calls, needs_repair=row.needs_repair),
        preamble_version=row.preamble_version,
        preamble_hash=row.preamble_hash,
        calibration=calibration_of(row.calibration, model=row.model),
        budget_tokens=row.budget_tokens,
        context_window=row.context_window,
        policy=row.policy,
        fired_tokens=row.fired_tokens,
        fired_turn=row.fired_turn,
        plan_turn=row.plan_turn,
        omitted_count=row.omitted_count,
        has_reports=row.has_reports,
    )


def state_after(turn: NewTurn, push: Push, *, version: str) -> SessionState:
    """Return the session's state after a push that changed no preamble."""
    state = turn.session
    return replace(
        state,
        version=version,
        format=turn.format,
        model=turn.session_model,
        context_window=turn.context_window,
        turn_count=state.turn_count + 1,
        message_count=state.message_count + len(push.messages),
        push_position=turn.push_position,
        context=turn.context,
        shown=turn.shown,
        continuation=turn.continuation,
        calibration=turn.calibration,
        plan_turn=turn.plan_turn,
    )


def row_read(target: Target, push: Push) -> Any:
    """Return the session's row, and the turn stored with the idempotency key; None if the key is invalid."""
    return _row(READ, target, push)


def row_lock(target: Target, push: Push) -> Any:
    """Lock the session. Return its row, and the turn that is stored with the idempotency key.

    A statement that waits for a lock does not see rows that were inserted in the meantime. If two copies of a
    push arrive at the same time, only a second statement sees the turn that the other copy stored.
    """
    row = _row(LOCK, target, push)
    if row is not None and row.answer is None and push.idempotency_key is not None:
        row = _row(READ, target, push)
    return row


def state_read(target: Target, push: Push) -> SessionState | None:
    """Return the session's state, or None if the push was stored before or the API key is invalid."""
    row = row_read(target, push)
    return state_from_row(row) if row is not None and row.answer is None else None


def state_reload(target: Target, push: Push) -> None:
    """Cache the session's state after a push that has locked it, so that the next push reads nothing."""
    with suppress(DatabaseError, InterfaceError):
        state = state_read(target, replace(push, idempotency_key=None))
        if state is not None:
            state_remember(state)


def _row(statement: LiteralString, target: Target, push: Push) -> Any:
    """Return the row of `READ` or `LOCK`: the session, and the turn stored with the idempotency key."""
    parameters = read_parameters(target, push)
    return execute(statement, parameters, row_factory=namedtuple_row).fetchone()


def calibrated(state: SessionState, push: Push) -> SessionState:
    """Return the state with the calibration for the push's model.

    Reads the calibrations of other sessions, at most once for each change of the model.
    """
    if not reads_calibration(state, push):
        return state
    window = window_after(state.context_window, model=state.model, following=push.model)
    calibration = calibration_following(
        state.calibration,
        project_id=state.project_id,
        model=state.model,
        following=push.model,
        agent=state.agent,
        budget=budget_tokens(own=state.budget_tokens, context_window=window, model=push.model),
    )
    return replace(state, calibration=calibration)


def reads_calibration(state: SessionState, push: Push) -> bool:
    """Return whether the push needs the calibrations of other sessions."""
    following = model_after(state, push)
    return counts_differently(state.calibration, model=state.model, following=following)
