"""Work in other threads that waits for the locks of a test's transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connection, transaction

from tests.background.world import eventually

Result = TypeVar("Result")


@contextmanager
def blocking(*works: Callable[[], Any]) -> Iterator[list[Future[Any]]]:
    """Run the block in a transaction, and commit it once all `works` wait for its locks, or have ended.

    Returns their futures, which are ready after the block. The test needs `django_db(transaction=True)`.
    """
    jobs: list[Future[Any]] = []
    with ThreadPoolExecutor(len(works)) as pool, transaction.atomic():
        yield jobs
        jobs += [pool.submit(in_thread, work) for work in works]
        eventually(lambda: waiting() + sum(job.done() for job in jobs) >= len(jobs))


@contextmanager
def waiting_for(
    table: str, work: Callable[[], Result], *, mode: str = "ACCESS EXCLUSIVE"
) -> Iterator[Future[Result]]:
    """Run the block in a transaction while `work` waits for a table, which the transaction has locked.

    Returns the future of `work`, which is ready after the block. With the mode `SHARE`, `work` waits where it
    writes to the table. The test needs `django_db(transaction=True)`.
    """
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {table} IN {mode} MODE")
        job = pool.submit(in_thread, work)
        eventually(lambda: waiting() == 1)
        yield job


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
