"""Decide whether one statement may store a push, without a lock on the session.

`turn_push` stores every other push with the session locked. Conditions that only the database knows are those
of the statement itself (`statements.py`).
"""

from __future__ import annotations

from sessions.services.push.values import NewTurn, Push, SessionState
from sessions.store.blobs import is_external


def push_is_eligible(state: SessionState, push: Push) -> bool:
    """Return whether the push need not be compared with stored messages, and nothing is stored before it."""
    if state.has_reports or (state.has_recorded and not push.is_placed) or is_stale(state, push):
        return False
    return not (is_external() and any(message.is_large for message in push.messages))


def turn_is_eligible(turn: NewTurn, push: Push) -> bool:
    """Return whether the turn changes no preamble, restores no tools and reports no compaction."""
    return not (turn.changes_preamble or turn.needs_shed_tools or push.has_provider_compaction)


def is_stale(state: SessionState, push: Push) -> bool:
    """Return whether another writer has pushed since the agent last read the session."""
    return push.expected_turn is not None and push.expected_turn != state.turn_count
