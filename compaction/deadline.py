"""The time limit of a plan, in seconds of wall-clock time.

Steps call `check_deadline` for each message that they read. Without a limit it does nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from compaction.errors import CompactionError

_deadline: ContextVar[float | None] = ContextVar("compaction_deadline", default=None)


class OutOfTime(CompactionError):
    """Planning took longer than its time limit."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` from the planning within the block once it has taken `seconds`."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def check_deadline() -> None:
    """Raise `OutOfTime` if the time limit is exceeded."""
    deadline = _deadline.get()
    if deadline is not None and time.monotonic() > deadline:
        raise OutOfTime("planning took too long")
