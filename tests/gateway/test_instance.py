"""A real instance with its gateway: many concurrent streams, and the effect of failures on agents."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from contextapp.embedded.home import database_url
from tests.gateway.anthropic_talk import STREAM, request, stream, text
from tests.gateway.double import Provider, Received, Reply
from tests.running.instance import START_SECONDS, Instance, children, running

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

STREAMS = 200

#: Bytes of the file system of the data folder.
DISK = 256 << 20


class World:
    """An instance in front of a provider that answers each session with a different stream."""

    def __init__(self, instance: Instance, provider: Provider) -> None:
        self.instance, self.provider = instance, provider
        self.key = (instance.home / "api-key").read_text().strip()
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
            "127.0.0.1", self.instance.gateway_port, timeout=START_SECONDS
        )
        headers = {"x-contextapp-key": self.key, "x-api-key": "sk", "x-session-id": session}
        body = request({"role": "user", "content": f"I am {session}."})
        connection.request("POST", "/gateway/anthropic/v1/messages", body, headers)
        response = connection.getresponse()
        found = response.status, response.read()
        connection.close()
        return found

    def recorded(self) -> int:
        try:
            with psycopg.connect(database_url(self.instance.home)) as connection:
                [count] = connection.execute("SELECT count(*) FROM agent_sessions_turn").fetchone() or [0]
        except psycopg.OperationalError:
            return -1
        return int(count)

    def kill(self, part: str, number: signal.Signals) -> None:
        for pid, command in children(self.instance.process.pid).items():
            if part in command:
                os.kill(pid, number)


def eventually(condition: Callable[[], object]) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """A folder with a small file system, or None if this user may not mount one."""
    folder = tmp_path_factory.mktemp("disk")
    options = ["-o", f"size={DISK},mode=0711", "tmpfs", str(folder)]
    mounted = subprocess.run(["mount", "-t", "tmpfs", *options], check=False, capture_output=True)
    yield folder if mounted.returncode == 0 else None
    if mounted.returncode == 0:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module")
def world(disk: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("gateway")
    with Provider() as provider:
        upstream = {"CONTEXTAPP_GATEWAY_ANTHROPIC_URL": provider.url}
        with running(Instance((disk or folder) / "home", folder / "out", **upstream)) as instance:
            yield World(instance, provider)


@contextmanager
def stopped(world: World, part: str) -> Iterator[None]:
    world.kill(part, signal.SIGSTOP)
    try:
        yield
    finally:
        world.kill(part, signal.SIGCONT)


def test_200_streams_at_once_all_arrive_unchanged_and_are_recorded(world: World) -> None:
    before, world.go = world.recorded(), threading.Event()
    begun = len(world.provider.received)
    names = [f"stream-{number}" for number in range(STREAMS)]
    with ThreadPoolExecutor(STREAMS) as agents:
        calls: list[Any] = [agents.submit(world.call, name) for name in names]
        assert eventually(lambda: len(world.provider.received) - begun == STREAMS)  # all are open
        world.go.set()
        answers = [call.result(START_SECONDS) for call in calls]
    world.go = None
    bodies = {name: body for name, (status, body) in zip(names, answers, strict=True) if status == 200}
    assert [name for name in names if bodies.get(name) != world.sent(name)] == []
    assert eventually(lambda: world.recorded() == before + STREAMS)


def test_agents_are_unaffected_by_a_broker_that_does_not_respond(world: World) -> None:
    before = world.recorded()
    with stopped(world, "valkey-server"):
        assert world.call("no-broker") == (200, world.sent("no-broker"))
        assert eventually(lambda: world.recorded() == before + 1)


def test_agents_are_unaffected_by_a_full_disk_and_their_calls_are_recorded_later(
    world: World, disk: Path | None
) -> None:
    if disk is None:
        pytest.skip("needs the permission to mount a file system")
    before, filler = world.recorded(), disk / "filler"
    names = [f"full-{number}" for number in range(3)]
    try:
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(1 << 20)):
                pass
        assert shutil.disk_usage(disk).free == 0
        for name in names:
            assert world.call(name) == (200, world.sent(name))
    finally:
        filler.unlink()
    assert eventually(lambda: world.recorded() == before + len(names))
