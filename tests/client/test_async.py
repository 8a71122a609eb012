"""What only the asynchronous client does: many calls at once, cancellation, and a free event loop."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx2
import pytest
from contextapp_client import AsyncContextApp, ConnectionFailed

from tests.asynchronous import run
from tests.client.flaky import HELD, Canned, FlakyServer

Flaky = Callable[..., FlakyServer]
PUSHED = Canned(status=201, body={"turn": 0})
QUESTION = [{"role": "user", "content": "Why does the build fail?"}]


def test_sessions_push_at_the_same_time(served_url: str, api_key: str) -> None:
    async def work(app: AsyncContextApp, number: int) -> list[Any]:
        session = await app.session(f"s{number}", create={"model": "claude-sonnet-5-5"})
        for turn in range(3):
            await session.push([{"role": "user", "content": f"{number}.{turn}"}], expected_turn=turn)
        return [turn["messages"][0]["content"] async for turn in session.turns()]

    async def main() -> list[list[Any]]:
        async with AsyncContextApp(served_url, api_key, max_connections=5) as app:
            return await asyncio.gather(*(work(app, number) for number in range(20)))

    assert run(main()) == [[f"{number}.{turn}" for turn in range(3)] for number in range(20)]


def test_a_cancelled_push_is_repeated_with_its_key(flaky: Flaky) -> None:
    server = flaky(HELD, PUSHED, PUSHED)

    async def main() -> None:
        async with AsyncContextApp(server.url, "ctx_key", max_connections=1) as app:
            session = await app.session("s")
            push = asyncio.create_task(session.push(QUESTION))
            while not server.seen:
                await asyncio.sleep(0.001)
            push.cancel()
            with pytest.raises(asyncio.CancelledError):
                await push
            assert await session.push(QUESTION) == {"turn": 0}
            await session.push(QUESTION)

    run(main())
    cancelled, repeated, new = (headers["Idempotency-Key"] for _, _, headers, _ in server.seen)
    assert cancelled == repeated != new


@pytest.mark.slow
def test_a_push_that_is_cancelled_at_any_moment_is_stored_once(served_url: str, api_key: str) -> None:
    async def main() -> list[Any]:
        async with AsyncContextApp(served_url, api_key) as app:
            session = await app.session(create={"model": "claude-sonnet-5-5"})
            for number in range(12):
                message = {"role": "user", "content": f"message {number}"}
                delay = 0.0005 * int(hashlib.sha256(message["content"].encode()).hexdigest(), 16) % 0.02
                for timeout in (delay, delay, None):
                    try:
                        async with asyncio.timeout(timeout):
                            await session.push([message])
                            break
                    except TimeoutError:
                        continue
            return [turn["messages"][0]["content"] async for turn in session.turns()]

    assert run(main()) == [f"message {number}" for number in range(12)]


def test_one_client_works_in_several_event_loops(flaky: Flaky) -> None:
    server = flaky(PUSHED)
    app = AsyncContextApp(server.url, "ctx_key")

    async def push() -> None:
        session = await app.session("s")
        await session.push(QUESTION)
        await session.push(QUESTION)

    run(push())
    run(push())
    assert len(server.seen) == 4
    assert len(set(server.clients)) == 2


@pytest.mark.slow
def test_large_bodies_do_not_occupy_the_event_loop(request: pytest.FixtureRequest) -> None:
    """Other tasks get their turn while 10 MB are encoded, and while 10 MB are parsed."""
    # On a fast machine, parsing takes only a few intervals of the default length.
    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(0.0001)
    history = [{"role": "user", "content": f"{number} " + "x" * 10_000} for number in range(1_000)]
    response = httpx2.Response(201, json={"data": history})
    turns = 0
    received_at = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    def receive(sent: httpx2.Request) -> httpx2.Response:
        nonlocal received_at
        assert json.loads(sent.content) == {"messages": history}
        received_at = turns
        return response

    async def main() -> None:
        connections = httpx2.AsyncClient(transport=httpx2.MockTransport(receive))
        app = AsyncContextApp("http://contextapp.test", "ctx_key", http_client=connections)
        session = await app.session("s")
        counting = asyncio.create_task(count())
        assert (await session.push(history))["data"] == history
        counting.cancel()

    run(main())
    assert received_at > 20
    assert turns - received_at > 5


def test_a_cancelled_wait_for_a_retry_ends_at_once(flaky: Flaky) -> None:
    server = flaky(Canned(status=503, headers={"Retry-After": "100"}))

    async def main() -> None:
        async with AsyncContextApp(server.url, "ctx_key") as app:
            session = await app.session("s")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await session.info()

    run(main())


def test_the_caller_may_provide_the_connections(flaky: Flaky) -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no route", request=request)

    async def main() -> None:
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(refuse)) as connections:
            app = AsyncContextApp("http://contextapp.test", "ctx_key", retries=0, http_client=connections)
            session = await app.session("s")
            with pytest.raises(ConnectionFailed, match="no route"):
                await session.info()
            await app.close()
            assert not connections.is_closed

    run(main())
