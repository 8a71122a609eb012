"""Record calls in a separate process, so that the streams do not share an interpreter with it.

Recording parses, redacts and counts: some milliseconds of computing for each call. The process starts with
the first request, because it takes some seconds and 160 MB, and ends with the gateway.
"""

from __future__ import annotations

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress

from gateway.calls import Call
from gateway.recording.recorder import NotRecorded, StoreUnavailable
from sessions.services.processes import process_pool

#: The process gives way to the streams.
_NICE = 5

#: Bytes of the file of the process's counters.
_COUNTER_BYTES = 1 << 16

#: Times that the process may die while it records a call, before that call is given up.
MOST_DEATHS = 5


class RecordingProcess:
    """A process that records calls, and is started again if it dies. Used by one thread at a time."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._deadly, self._deaths = "", 0  # the call during which the process died last, and how often

    def start(self) -> None:
        """Start the process, unless it runs. Does not wait until it is ready."""
        self._running().submit(int)

    def _running(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = process_pool(1, _prepare)
        return self._pool

    def record(self, call: Call) -> None:
        """Record a call. Raises `StoreUnavailable` or `NotRecorded`."""
        try:
            error, is_temporary = self._running().submit(_record, call).result()
        except BrokenProcessPool:
            self._pool = None
            self._deaths = self._deaths + 1 if call.id == self._deadly else 1
            self._deadly = call.id
            if self._deaths >= MOST_DEATHS:  # otherwise, the next calls would wait forever
                raise NotRecorded(f"the recording process died {self._deaths} times") from None
            raise StoreUnavailable("the recording process died") from None
        if error:
            raise StoreUnavailable(error) if is_temporary else NotRecorded(error)

    def stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def _prepare() -> None:
    """Set up Django in the process."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the gateway ends the process after the last call
    os.nice(_NICE)
    import django

    django.setup()
    _count_events()


def _count_events() -> None:
    """Count the compactions and spikes of recorded calls for the metrics, unless the disk is full."""
    from sessions.store.metric_files import metric_files_reserve

    with suppress(OSError):
        metric_files_reserve(counter=_COUNTER_BYTES)
        from sessions.services import event_metrics  # noqa: F401


def _record(call: Call) -> tuple[str, bool]:
    """Return the kind of error, "" for none, and whether a later attempt may succeed.

    Not an exception, because not every exception can be sent to another process.
    """
    from gateway.recording.record import call_record

    try:
        call_record(call)
    except StoreUnavailable as error:
        return str(error), True
    except Exception as error:
        return type(error).__name__, False
    return "", False
