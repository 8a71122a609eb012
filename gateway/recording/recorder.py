"""Record calls one at a time, without delaying or failing the calls."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gateway.calls import Call
from gateway.metrics import metrics
from gateway.recording.spool import Spool

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Shortest and longest pause between two attempts to reach the store, in seconds.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0


class StoreUnavailable(Exception):
    """The store cannot be reached or cannot write. A later attempt may succeed."""


class NotRecorded(Exception):
    """The call cannot be recorded at all. The message is safe to log."""


class Recorder:
    """A queue of calls, limited in number and bytes. Calls that do not fit are written to the spool.

    Calls are recorded in the order in which they ended, so that a session receives its turns in order: while
    calls are on disk, new ones are also written to disk. If the disk is full, they wait in memory.

    `write` records a call, and raises `StoreUnavailable` if that should be repeated, or another error.
    `begin` is called before the first call ends, and `end` after the last one. All run in one thread.
    """

    def __init__(
        self,
        spool: Spool,
        write: Callable[[Call], None],
        *,
        begin: Callable[[], None] = lambda: None,
        end: Callable[[], None] = lambda: None,
        most_calls: int = 1_000,
        most_bytes: int = 2**28,
    ) -> None:
        self._spool = spool
        self._write, self._begin, self._end = write, begin, end
        self._limits = most_calls, most_bytes
        self._queue: deque[Call] = deque()
        self._bytes = 0
        self._spooled = not spool.is_empty
        self._is_disk_older = False  # than those in the queue that did not fit on the disk
        self._being_written = 0  # calls on their way to the disk, which return to the queue if it is full
        self._order = asyncio.Lock()  # held while calls are added or written to disk, to keep their order
        self._arrived = asyncio.Event()
        self._pause = _FIRST_PAUSE
        self._is_prepared = False
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="recorder")
        # A separate thread, so that calls are stored on disk even while the store hangs.
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="spool")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def prepare(self) -> None:
        """Start what records calls, while the provider answers the first one."""
        if not self._is_prepared:
            self._writing.submit(self._begin)
        self._is_prepared = True

    @property
    def waiting(self) -> int:
        """The number of calls in memory."""
        return len(self._queue) + self._being_written

    async def add(self, call: Call) -> None:
        """Add a call. Returns when it is in the queue or on disk."""
        async with self._order:
            if (self._spooled and not self._is_disk_older) or not self._has_room(call):
                left = await self._to_disk([call])
                self._is_disk_older |= self._spooled and not self._queue and bool(left)
                self._keep(left)
            else:
                self._keep([call])
        self._arrived.set()

    async def stop(self) -> None:
        """Stop recording, and write the calls in memory to disk."""
        async with self._order:  # not before all calls on their way to the disk are stored
            if self._task is not None:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)
            for call in await self._to_disk(self._drain()):
                _report_lost(call, "the disk is full")
        await _in_thread(self._writing, self._end)  # after the call in progress
        self._writing.shutdown()
        self._disk.shutdown()

    async def wait_for(self, is_wanted: Callable[[Call], bool], *, seconds: float) -> None:
        """Wait until the calls in memory that are wanted are recorded or on disk, at most some seconds."""
        last = next(filter(is_wanted, reversed(self._queue)), None)
        began = time.monotonic()
        while any(each is last for each in self._queue) and (waited := time.monotonic() - began) < seconds:
            # Many requests may wait while the store is slow, and the queue is long then.
            await asyncio.sleep(min(0.005 + waited / 4, seconds - waited))

    async def settle(self) -> None:
        """Return when every call is recorded."""
        while self.waiting or self._spooled:
            await asyncio.sleep(0.01)

    def _drain(self) -> list[Call]:
        calls = list(self._queue)
        self._queue.clear()
        self._bytes = 0
        return calls

    async def _run(self) -> None:
        while True:
            if self._queue and not self._is_disk_older:
                await self._record_next()
            elif self._spooled:
                await self._record_oldest()
            else:
                self._arrived.clear()
                await self._arrived.wait()

    async def _record_next(self) -> None:
        call = self._queue[0]
        try:
            await _in_thread(self._writing, self._write, call)
        except StoreUnavailable as error:
            log.warning("The store is unavailable (%s). Calls are stored on disk.", error)
            async with self._order:
                left = await self._to_disk(self._drain())
                self._is_disk_older = self._spooled and bool(left)
                self._queue.extend(left)
                self._bytes = sum(call.size for call in left)
            await self._wait()
            return
        except Exception as error:
            _report_lost(call, _reason(error))
        if self._queue and self._queue[0] is call:
            self._queue.popleft()
            self._bytes -= call.size
        self._pause = _FIRST_PAUSE

    async def _record_oldest(self) -> None:
        try:
            found = await _in_thread(self._disk, self._spool.oldest)
        except OSError as error:
            log.warning("The spool cannot be read: %s.", error)
            await self._wait()
            return
        if found is None:
            self._spooled = self._is_disk_older = False
            return
        file, call = found
        try:
            await _in_thread(self._writing, self._write, call)
        except StoreUnavailable:
            await self._wait()
            return
        except Exception as error:  # for example, the project was deleted: nothing of it may stay on disk
            _report_lost(call, _reason(error))
        try:
            await _in_thread(self._disk, self._spool.remove, file)
        except OSError as error:  # recording the call again changes nothing
            log.warning("A recorded call cannot be deleted from the disk: %s.", error)
            await self._wait()
            return
        self._pause = _FIRST_PAUSE

    def _has_room(self, call: Call) -> bool:
        most_calls, most_bytes = self._limits
        return len(self._queue) < most_calls and self._bytes + call.size <= most_bytes

    def _keep(self, calls: Sequence[Call]) -> None:
        """Append calls to the queue. Those that do not fit are lost."""
        for call in calls:
            if self._has_room(call):
                self._queue.append(call)
                self._bytes += call.size
            else:
                _report_lost(call, "neither the disk nor the memory has room for it")

    async def _to_disk(self, calls: Sequence[Call]) -> Sequence[Call]:
        """Write calls to disk in order. Return those that did not fit. The caller holds `_order`."""
        self._being_written = len(calls)
        try:
            for index, call in enumerate(calls):
                try:
                    await _in_thread(self._disk, self._spool.add, call)
                except OSError as error:
                    log.warning("A call cannot be stored on disk: %s.", error)
                    return calls[index:]
                self._spooled = True
                metrics().spooled.inc()
            return ()
        finally:
            self._being_written = 0

    async def _wait(self) -> None:
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)


async def _in_thread(threads: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(threads, work, *arguments)


def _reason(error: Exception) -> str:
    """Return the message of an error, or its type: the messages of others may quote contents."""
    return str(error) if isinstance(error, NotRecorded) else type(error).__name__


def _report_lost(call: Call, reason: str) -> None:
    """Count a call that could not be recorded. The log names its id and the reason, no contents."""
    metrics().lost.inc()
    log.error("Call %s could not be recorded (%s).", call.id, reason)
