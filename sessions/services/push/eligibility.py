"""Decide whether one statement may store a push, without a lock on the session.

`turn_push` stores every other push with the session locked. Conditions that only the database knows are those
of the statement itself (`statements.py`).
"""

from __future__ import annotations

from sessions.services.push.compute import turn_compute
from sessions.services.push.session_state import calibrated
from sessions.services.push.values import NewTurn, Push, SessionState
from sessions.store.blobs import is_external


def turn_eligible(state: SessionState, push: Push) -> NewTurn | None:
    """Return the turn that the push adds, or None if one statement cannot store it.

    It can if the push need not be compared with stored messages, nothing is stored before it, and the turn
    changes no preamble, restores no tools and reports no compaction.
    """
    if state.has_reports or (state.has_recorded and not push.is_placed) or is_stale(state, push):
        return None
    if is_external() and any(message.is_large for message in push.messages):
        return None
    turn = turn_compute(calibrated(state, push), push)
    restores_tools = turn.needs_shed_tools or turn.has_room_for_shed_tools
    is_plain = not (turn.changes_preamble or restores_tools or push.has_provider_compaction)
    return turn if is_plain else None


def is_stale(state: SessionState, push: Push) -> bool:
    """Return whether another writer has pushed since the agent last read the session."""
    return push.expected_turn is not None and push.expected_turn != state.turn_count
