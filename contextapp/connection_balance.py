"""Spread the connections of active clients evenly over the processes of the web server.

The kernel assigns each new connection to a process by a hash. Agents keep their connections for a whole
session. With four agents and two processes, one process therefore serves all agents in one of eight cases,
while the other is idle. A process with more active connections than another therefore closes one after a
response. Its client connects again, which assigns it again, until the processes are balanced.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable

#: A connection is active if it has sent a request in this many seconds, or in twice as many.
ACTIVE_SECONDS = 5.0

#: Seconds between two comparisons with the other processes, and so between two connections that are closed.
_PAUSE = 0.05

#: The number of active connections of a process, and the time at which it was written (`time.monotonic`).
_ENTRY = struct.Struct("=qd")

#: Processes choose their entry by their number. Two of them may share one, and are then balanced less well.
_ENTRIES = 64


def new_board() -> mmap.mmap:
    """Return memory that this process shares with those that it forks afterwards."""
    return mmap.mmap(-1, _ENTRIES * _ENTRY.size)


#: The board of the processes that are forked after this module was imported. Processes that are spawned share
#: one socket instead, and whichever is free accepts a connection. None sees another's entry or closes one.
BOARD = new_board()


class Balance:
    """The active connections of this process, compared with those of the others.

    `board` is memory that all processes share, `process` the number of this one. Used only on the event loop.
    """

    def __init__(
        self, board: mmap.mmap, *, process: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._board, self._clock = board, clock
        self._offset = process % _ENTRIES * _ENTRY.size
        self._recent: set[str] = set()  #: clients since the last beat
        self._earlier: set[str] = set()  #: those of the time before it that are not in `_recent`
        self._next_comparison = 0.0

    def beat(self) -> None:
        """Forget inactive connections, and show the others that this process is running.

        Must be called every `ACTIVE_SECONDS`.
        """
        self._earlier, self._recent = self._recent, set()
        self._write()

    def closes(self, client: str) -> bool:
        """Count a request of a client (address and port). Return whether to close its connection."""
        if client not in self._recent:
            is_new = client not in self._earlier
            self._recent.add(client)
            self._earlier.discard(client)
            if is_new:
                self._write()
        now = self._clock()
        if now < self._next_comparison:
            return False
        self._next_comparison = now + _PAUSE
        if not self._is_overloaded(now):
            return False
        self._recent.discard(client)
        self._write()
        return True

    def _is_overloaded(self, now: float) -> bool:
        """Return whether this process has at least two connections more than another, and a quarter more."""
        own = len(self._recent) + len(self._earlier)
        if own < 2:
            return False
        fresh = now - 2 * ACTIVE_SECONDS
        entries = _ENTRY.iter_unpack(self._board[: _ENTRIES * _ENTRY.size])
        least = min((connections for connections, at in entries if at > fresh), default=own)
        return own - least >= 2 and own * 4 > least * 5

    def _write(self) -> None:
        connections = len(self._recent) + len(self._earlier)
        _ENTRY.pack_into(self._board, self._offset, connections, self._clock())
