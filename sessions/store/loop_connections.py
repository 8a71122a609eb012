"""Connections to Postgres for an event loop: prepared statements in autocommit mode, without threads.

The statement of a push takes less time than handing the request to a thread and back. psycopg's own
asynchronous connections take longer too, because they adapt parameters and results in Python.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg import pq
from psycopg.errors import OperationalError, error_from_result

from sessions.store.prepared import Prepared

#: A row of results in text format.
Row = Sequence[bytes | None]

_SUCCESS = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK})


class NotConnected(Exception):
    """No connection could be opened. Nothing was sent."""


class LoopConnection:
    """One connection. Executes one statement at a time."""

    def __init__(self, raw: psycopg.Connection[Any], loop: asyncio.AbstractEventLoop) -> None:
        self._raw, self._loop = raw, loop
        self._pgconn = raw.pgconn
        self._known: set[bytes] = set()
        self._results: list[pq.abc.PGresult] = []
        self._waiting: asyncio.Future[pq.abc.PGresult] | None = None
        self._socket = self._pgconn.socket
        self._is_closed = False
        loop.add_reader(self._socket, self._read)

    @property
    def is_open(self) -> bool:
        return not self._is_closed

    def close(self) -> None:
        """Close the connection. Must follow any error at once.

        If the server has gone, libpq has closed the socket already. The event loop must forget it before the
        next connection gets the same file descriptor, or it would never report that one's results.
        """
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._raw.close()

    async def fetch_row(self, statement: Prepared, values: list[bytes | None]) -> Row | None:
        """Execute a statement with encoded values. Return its first row, or None.

        If it fails in any way, or is cancelled, the connection is closed.
        """
        try:
            if statement.name not in self._known:
                self._pgconn.send_prepare(statement.name, statement.sql, statement.oids)
                _checked(await self._result())
                self._known.add(statement.name)
            self._pgconn.send_query_prepared(statement.name, values, statement.formats, pq.Format.TEXT)
            return _first_row(_checked(await self._result()))
        except BaseException:
            self.close()
            raise

    async def _result(self) -> pq.abc.PGresult:
        self._waiting = self._loop.create_future()
        self._write()
        try:
            return await self._waiting
        finally:
            self._waiting = None

    def _write(self) -> None:
        """Send what is left of the statement."""
        try:
            if self._pgconn.flush():
                self._loop.add_writer(self._socket, self._write)
            else:
                self._loop.remove_writer(self._socket)
        except psycopg.Error as error:
            self._fail(error)

    def _read(self) -> None:
        """Receive results. Between two statements, the server sends only that it closes the connection."""
        try:
            self._pgconn.consume_input()
            while self._waiting is not None and not self._pgconn.is_busy():
                result = self._pgconn.get_result()
                if result is not None:
                    self._results.append(result)
                    continue
                if not self._waiting.done():
                    self._waiting.set_result(self._results[0])
                self._results.clear()
                return
            if self._pgconn.status == pq.ConnStatus.BAD:
                raise OperationalError("the connection was closed")
        except psycopg.Error as error:
            self._fail(error)

    def _fail(self, error: psycopg.Error) -> None:
        self.close()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)


def _checked(result: pq.abc.PGresult) -> pq.abc.PGresult:
    """Return the result. Raises psycopg's error if the statement failed."""
    if result.status not in _SUCCESS:
        raise error_from_result(result)
    return result


def _first_row(result: pq.abc.PGresult) -> Row | None:
    if not result.ntuples:
        return None
    return [result.get_value(0, column) for column in range(result.nfields)]


class LoopConnections:
    """At most `size` connections, opened when they are needed. `connect` runs in a thread."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], *, size: int) -> None:
        self._connect = connect
        self._free = asyncio.Semaphore(size)
        self._idle: list[LoopConnection] = []

    async def fetch_row(self, statement: Prepared, values: list[bytes | None]) -> Row | None:
        """Execute a statement. Raises `NotConnected`, or psycopg's errors: then it may have been executed."""
        async with self._free:
            connection = await self._take()
            try:
                return await connection.fetch_row(statement, values)
            finally:
                if connection.is_open:
                    self._idle.append(connection)

    async def _take(self) -> LoopConnection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        loop = asyncio.get_running_loop()
        try:
            raw = await loop.run_in_executor(None, self._connect)
        except psycopg.Error as error:
            raise NotConnected from error
        return LoopConnection(raw, loop)

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()
