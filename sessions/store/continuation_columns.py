"""The columns of a session that contain its continuation state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compaction.continuation import Continuation
from sessions.store.text import storable


def continuation_columns(state: Continuation) -> dict[str, Any]:
    """Return the columns of a state. NUL in the ids of calls, which Postgres rejects, is replaced."""
    return {
        "open_calls": [storable(call) for call in state.open_calls],
        "needs_repair": not state.regular,
    }


def continuation_of(*, open_calls: Sequence[str], needs_repair: bool) -> Continuation:
    """Return the state in these columns."""
    return Continuation(open_calls=tuple(open_calls), regular=not needs_repair)
