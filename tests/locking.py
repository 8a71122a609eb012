"""Work in other threads that waits for the locks of a test's transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import connection

Result = TypeVar("Result")


def in_thread(work: Callable[[], Result]) -> Result:
    """Run `work`, and close the connection of this thread."""
    try:
        return work()
    finally:
        connection.close()


def waiting() -> int:
    """Return how many sessions of the test database wait for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # which the test's transaction would keep
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        [count] = cursor.fetchone()
    return int(count)
