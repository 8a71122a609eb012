"""Find out when the database was last written to."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import psycopg

#: Seconds for which a position that was read is reused.
FRESH = 1.0
#: Seconds to wait for a connection, and to wait after a failure before the next attempt.
CONNECT_SECONDS, PAUSE = 2, 10.0


class Activity:
    """Watches the position of the write-ahead log, which every write moves.

    If it cannot be read, for example on a server that is shutting down, the database counts as active.
    Writes to other databases of the same server count as well.
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = parameters
        self._connection: psycopg.Connection[Any] | None = None
        self._position: object = None
        self._changed_at = self._read_at = float("-inf")

    def quiet_seconds(self) -> float:
        """Return the seconds since the last write was seen."""
        now = time.monotonic()
        if now - self._read_at >= FRESH:
            self._read(now)
        return now - self._changed_at

    def _read(self, now: float) -> None:
        self._read_at = now
        try:
            if self._connection is None:
                self._connection = psycopg.connect(**self._parameters, autocommit=True)
            [position] = self._connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone() or [None]
        except psycopg.Error:
            self._connection, position = None, None
            self._read_at = now + PAUSE - FRESH
        if position is None or position != self._position:
            self._position, self._changed_at = position, now


def connection_parameters(database: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `psycopg.connect` for a database of Django's settings."""
    options = {name: value for name, value in database.get("OPTIONS", {}).items() if name != "pool"}
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    given = {name: database[key] for name, key in names.items() if database.get(key)}
    return options | given | {"connect_timeout": CONNECT_SECONDS, "application_name": "contextapp scheduler"}
