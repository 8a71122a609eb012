"""The deadline of a request: it stops when it takes too long or its client has left.

After a commit it runs to its end: an error response would indicate that its changes were not stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, connections

from compaction.deadline import Deadline, check_deadline, limited_by

#: Seconds for handling a complete request. Then, its next SQL statement raises `OutOfTime`.
REQUEST_SECONDS = 60.0

#: Seconds after which the server checks whether the client of a request has left. Most requests are shorter.
WATCH_AFTER = 1.0


def watch_client(proto: Any, deadline: Deadline) -> Callable[[], None]:
    """Expire the deadline when the client disconnects. Returns a function that ends the watch."""
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []

    async def watch() -> None:
        await proto.client_disconnect()
        deadline.expire()

    timer = loop.call_later(WATCH_AFTER, lambda: tasks.append(loop.create_task(watch())))

    def end() -> None:
        timer.cancel()
        for task in tasks:
            task.cancel()

    return end


@contextmanager
def request_limited(deadline: Deadline) -> Iterator[None]:
    """Apply the deadline to the SQL statements and the plans within the block, up to the first commit."""
    with limited_by(deadline), connection.execute_wrapper(_stop_late), _lifted_by_commit(deadline):
        yield


@contextmanager
def _lifted_by_commit(deadline: Deadline) -> Iterator[None]:
    wrapper = connections[connection.alias]
    commit = wrapper.commit

    def commit_and_lift() -> None:
        commit()
        deadline.lift()

    wrapper.commit = commit_and_lift  # type: ignore[method-assign]
    try:
        yield
    finally:
        del wrapper.commit


def _stop_late(execute: Callable[..., Any], *arguments: Any) -> Any:
    check_deadline()
    return execute(*arguments)


def limit_statements(seconds: float) -> None:
    """Let Postgres end each statement of this process after `seconds`."""
    options = connections.databases["default"].setdefault("OPTIONS", {})
    given = options.get("options", "")
    options["options"] = f"{given} -c statement_timeout={seconds * 1000:.0f}".strip()
