"""Sessions as this process last saw them, so that a push need not read what it has just written.

A state is only ever a guess: the statement that uses it names the version of the row that it stands for, and
writes nothing where another one is there by now. So nobody has to tell other processes of changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from compaction.breakdown import TokenBreakdown
from compaction.continuation import Continuation
from sessions.services.push.values import Push, Pushed, SessionState

_states: dict[UUID, SessionState] = {}

#: Some 3 KB each.
_SIZE = 5_000


def state_known(session_id: UUID) -> SessionState | None:
    return _states.get(session_id)


def state_remember(state: SessionState) -> None:
    if len(_states) >= _SIZE:
        _states.clear()
    _states[state.id] = state


def state_forget(session_id: UUID) -> None:
    _states.pop(session_id, None)


def state_of(row: Sequence[Any]) -> SessionState:
    """From a row of `push_sql.READ` or `LOCK`."""
    return SessionState(
        version=row[0],
        id=row[1],
        project_id=row[2],
        format=row[3],
        model=row[4],
        turn_count=row[5],
        message_count=row[6],
        context=TokenBreakdown(tokens=row[7]),
        shown=TokenBreakdown(tokens=row[8]),
        seam=Continuation(open_calls=tuple(row[9]), regular=not row[10]),
        preamble_version=row[11],
        preamble_hash=row[12],
        calibration=row[13],
        budget_tokens=row[14],
        context_window=row[15],
        policy=row[16],
        fired_tokens=row[17],
        fired_turn=row[18],
    )


def state_after(pushed: Pushed, push: Push, *, version: str) -> SessionState:
    """What the push made of the session, where it made no new preamble and nothing fired."""
    state = pushed.session
    return replace(
        state,
        version=version,
        model=pushed.model,
        turn_count=state.turn_count + 1,
        message_count=state.message_count + len(push.messages),
        context=pushed.context,
        shown=pushed.shown,
        seam=pushed.seam,
        calibration=pushed.calibration,
    )
