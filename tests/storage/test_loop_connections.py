"""Connections of the event loop after their server processes have ended."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from sessions.store.loop_connections import LoopConnections, NotConnected
from sessions.store.prepared import Prepared
from tests.asynchronous import run
from tests.serving import database_url

pytestmark = [pytest.mark.django_db(transaction=True)]

#: Returns a value, and the server process of the connection.
ECHO = Prepared("echo", "SELECT %(text)s, pg_backend_pid()", {"text": "text"})

PATIENCE = 30


def connect() -> psycopg.Connection[Any]:
    return psycopg.connect(database_url(), autocommit=True)


async def echo(connections: LoopConnections, text: str) -> int:
    """Return the server process that returned the text."""
    row = await asyncio.wait_for(connections.fetch_row(ECHO, ECHO.encode({"text": text})), PATIENCE)
    assert row is not None
    assert row[0] == text.encode()
    assert row[1] is not None
    return int(row[1])


async def again(connections: LoopConnections, text: str) -> int:
    """Return the server process of a statement that is repeated until it succeeds."""
    while True:
        try:
            return await echo(connections, text)
        except (psycopg.Error, NotConnected):
            continue


def end(*processes: int) -> None:
    with connect() as other:
        for process in processes:
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [process])


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("text", ["short", "long " * 100_000])
def test_a_connection_that_replaces_a_closed_one_responds(size: int, text: str) -> None:
    """libpq closes the socket, and the next connection gets its file descriptor."""

    async def work() -> None:
        connections = LoopConnections(connect, size=size)
        for _ in range(3):
            processes = await asyncio.gather(*(echo(connections, text) for _ in range(size)))
            end(*processes)
            found = await asyncio.gather(*(again(connections, text) for _ in range(size)))
            assert not set(found) & set(processes)
        connections.close()

    run(work())


@pytest.mark.parametrize("pause", ["SELECT pg_sleep(60), %(text)s", "SELECT %(text)s, pg_sleep(60)"])
def test_a_statement_whose_server_process_ends_fails(pause: Any) -> None:
    sleep = Prepared("sleep", pause, {"text": "text"})

    async def work() -> None:
        connections = LoopConnections(connect, size=1)
        process = await echo(connections, "first")
        sleeping = asyncio.ensure_future(connections.fetch_row(sleep, sleep.encode({"text": "x"})))
        await asyncio.sleep(0)
        await asyncio.get_running_loop().run_in_executor(None, end, process)
        with pytest.raises(psycopg.Error):
            await asyncio.wait_for(sleeping, PATIENCE)
        assert await echo(connections, "second") != process
        connections.close()

    run(work())
