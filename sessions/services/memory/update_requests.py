"""Request memory updates without delaying the push.

Sending a message to the broker takes about as long as a push, so a thread does it, with one message for all
pushes of a session in a short interval. If the process ends first, the next sweep sends them.
"""

from __future__ import annotations

import threading
import time
from uuid import UUID

from sessions.services.dispatch import MEMORY_UPDATE, task_dispatch

#: Seconds during which requests for the same session are combined.
INTERVAL = 0.2


class UpdateRequests:
    """Collects sessions and dispatches their updates. The thread starts on first use, after any fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: set[UUID] = set()
        self._added = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, session_id: UUID) -> None:
        with self._lock:
            self._pending.add(session_id)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="memory-updates", daemon=True)
                self._thread.start()
        self._added.set()

    def _run(self) -> None:
        while True:
            self._added.wait()
            self._added.clear()
            time.sleep(INTERVAL)
            with self._lock:
                session_ids, self._pending = self._pending, set()
            for session_id in session_ids:
                task_dispatch(MEMORY_UPDATE, session_id)


_requests = UpdateRequests()
memory_update_request = _requests.add
