"""Waking a worker up for upkeep without holding a push up.

A message to the broker takes about as long as a whole push, so a thread of the process sends them, one a
session for all the pushes of a moment. What it had not sent when the process ends, the sweep sends.
"""

from __future__ import annotations

import threading
import time
from uuid import UUID

from sessions.services.dispatch import upkeep_dispatch

#: Seconds in which pushes of one session are gathered into one message.
GATHERED = 0.2


class Waker:
    """Gathers sessions and sends for them. The thread begins with the first: a process may fork before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[UUID] = set()
        self._pushed = threading.Event()
        self._thread: threading.Thread | None = None

    def wake(self, session_id: UUID) -> None:
        with self._lock:
            self._waiting.add(session_id)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="upkeep-waker", daemon=True)
                self._thread.start()
        self._pushed.set()

    def _run(self) -> None:
        while True:
            self._pushed.wait()
            self._pushed.clear()
            time.sleep(GATHERED)
            with self._lock:
                session_ids, self._waiting = self._waiting, set()
            for session_id in session_ids:
                upkeep_dispatch(session_id)


_waker = Waker()
upkeep_wake = _waker.wake
