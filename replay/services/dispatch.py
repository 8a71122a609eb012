"""Send replays to the workers."""

from __future__ import annotations

from uuid import UUID

from sessions.services.dispatch import task_dispatch

#: The task's name, so that a sender need not import it.
STEP = "replay.tasks.replay_step"


def replay_dispatch(run_id: UUID) -> bool:
    """Request the next slice of a replay. Returns False if the broker did not accept it."""
    return task_dispatch(STEP, run_id)
