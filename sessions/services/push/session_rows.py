"""Read and lock the session of a push."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, LiteralString

from django.db import DatabaseError, InterfaceError, connection
from msgspec.structs import replace
from psycopg.rows import namedtuple_row

from sessions.services.push.parameters import read_parameters
from sessions.services.push.session_cache import state_from_row, state_remember
from sessions.services.push.statements import LOCK, READ
from sessions.services.push.values import Push, SessionState, Target
from sessions.store.postgres import execute, raw_connection


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
    with suppress(DatabaseError, InterfaceError), connection.wrap_database_errors:
        state = state_read(target, replace(push, idempotency_key=None))
        if state is not None:
            state_remember(state)


def _row(statement: LiteralString, target: Target, push: Push) -> Any:
    """Return the row of `READ` or `LOCK`: the session, and the turn stored with the idempotency key."""
    parameters = read_parameters(target, push)
    return execute(raw_connection(), statement, parameters, row_factory=namedtuple_row).fetchone()
