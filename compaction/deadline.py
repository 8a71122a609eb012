"""Deadlines: of a plan, and of the request for which it is made.

Code that may take long calls `check_deadline` again and again, for example for each message that it reads.
Without a deadline it does nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from compaction.errors import CompactionError


class OutOfTime(CompactionError):
    """The work took longer than its deadline, or its client has left."""


class Deadline:
    """A point in time, in seconds of `time.monotonic`. Another thread may `expire` it earlier.

    After `lift`, it no longer applies.
    """

    def __init__(self, seconds: float) -> None:
        self.at = time.monotonic() + seconds

    def expire(self) -> None:
        if self.at < math.inf:
            self.at = 0.0

    def lift(self) -> None:
        self.at = math.inf


_active: ContextVar[tuple[Deadline, ...]] = ContextVar("deadlines", default=())


@contextmanager
def limited_by(deadline: Deadline) -> Iterator[None]:
    """Apply a deadline to the block, in addition to those that apply already."""
    token = _active.set((*_active.get(), deadline))
    try:
        yield
    finally:
        _active.reset(token)


def check_deadline() -> None:
    """Raise `OutOfTime` after a deadline that applies."""
    if (active := _active.get()) and time.monotonic() > min(deadline.at for deadline in active):
        raise OutOfTime("it took too long")
