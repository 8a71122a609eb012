"""A real instance with its gateway: many concurrent streams, and the effect of failures on agents."""

from __future__ import annotations

import http.client
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from contextapp.embedded.home import database_url
from tests.background.world import World, eventually
from tests.gateway.anthropic_talk import STREAM, request, stream, text
from tests.gateway.double import Provider, Received, Reply
from tests.running.instance import START_SECONDS

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

#: More than the 100 connections that HTTP clients open by default.
STREAMS = 120


class Agents:
    """Agents of an instance's gateway, whose provider answers each session with a different stream."""

    def __init__(self, world: World, provider: Provider) -> None:
        self.world, self.provider = world, provider
        self.go: threading.Event | None = None
        self.streams: dict[str, list[bytes]] = {}
        provider.otherwise = self.reply

    def reply(self, received: Received) -> Reply:
        session = received.header("x-session-id") or ""
        parts = self.streams[session] = stream(text(f"Hello, {session}: größer – 日本. " * 20))
        return Reply(headers=STREAM, parts=parts, go=self.go)

    def sent(self, session: str) -> bytes:
        """Return the body that the provider has sent."""
        return b"".join(self.streams.get(session, []))

    def call(self, session: str) -> tuple[int, bytes]:
        """Return the status and the body that an agent receives."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.world.instance.gateway_port, timeout=START_SECONDS
        )
        headers = {"x-contextapp-key": self.world.key, "x-api-key": "sk", "x-session-id": session}
        body = request({"role": "user", "content": f"I am {session}."})
        connection.request("POST", "/gateway/anthropic/v1/messages", body, headers)
        response = connection.getresponse()
        found = response.status, response.read()
        connection.close()
        return found

    def recorded(self) -> int:
        try:
            with psycopg.connect(database_url(self.world.instance.home)) as connection:
                [count] = connection.execute("SELECT count(*) FROM agent_sessions_turn").fetchone() or [0]
        except psycopg.OperationalError:
            return -1
        return int(count)


@pytest.fixture
def agents(shared_world: World, upstream: Provider) -> Agents:
    eventually(shared_world.is_ready)
    return Agents(shared_world, upstream)


@contextmanager
def stopped(world: World, part: str) -> Iterator[None]:
    world.kill(part, signal.SIGSTOP)
    try:
        yield
    finally:
        world.kill(part, signal.SIGCONT)


def test_many_streams_at_once_all_arrive_unchanged_and_are_recorded(agents: Agents) -> None:
    before, agents.go = agents.recorded(), threading.Event()
    begun = len(agents.provider.received)
    names = [f"stream-{number}" for number in range(STREAMS)]
    with ThreadPoolExecutor(STREAMS) as pool:
        calls: list[Any] = [pool.submit(agents.call, name) for name in names]
        assert eventually(lambda: len(agents.provider.received) - begun == STREAMS)  # all are open
        agents.go.set()
        answers = [call.result(START_SECONDS) for call in calls]
    agents.go = None
    bodies = {name: body for name, (status, body) in zip(names, answers, strict=True) if status == 200}
    assert [name for name in names if bodies.get(name) != agents.sent(name)] == []
    assert eventually(lambda: agents.recorded() == before + STREAMS)


def test_agents_are_unaffected_by_a_broker_that_does_not_respond(agents: Agents) -> None:
    before = agents.recorded()
    with stopped(agents.world, "valkey-server"):
        assert agents.call("no-broker") == (200, agents.sent("no-broker"))
        assert eventually(lambda: agents.recorded() == before + 1)


def test_agents_are_unaffected_by_a_full_disk_and_their_calls_are_recorded_later(
    agents: Agents, disk: Path | None
) -> None:
    if disk is None:
        pytest.skip("needs the permission to mount a file system")
    before, filler = agents.recorded(), disk / "filler"
    names = [f"full-{number}" for number in range(3)]
    try:
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(1 << 20)):
                pass
        assert shutil.disk_usage(disk).free == 0
        for name in names:
            assert agents.call(name) == (200, agents.sent(name))
    finally:
        filler.unlink()
    assert eventually(lambda: agents.recorded() == before + len(names))
