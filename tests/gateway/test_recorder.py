"""The recorder: order, limits, and failures of the store or the disk."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from gateway import callers
from gateway.calls import Call, KeyProof
from gateway.recording import recorder as recording
from gateway.recording.recorder import Recorder, StoreUnavailable
from gateway.recording.spool import Spool
from sessions.models import AgentSession
from tests import asynchronous
from tests.gateway.anthropic_talk import request, streamed, text
from tests.gateway.double import Provider
from tests.gateway.running import Running

SECRET = b"the agent said something private"


def call(number: int, body: bytes = SECRET) -> Call:
    return Call(
        id=f"{number:032x}", at=0, provider="anthropic", endpoint="messages", upstream="https://a",
        mode="observe", key=KeyProof(prefix="p", hash="h"), headers={"user-agent": "x"},
        body=body, response=b"answer",
    )  # fmt: skip


class Store:
    """A store that appends calls to a list while it is available."""

    def __init__(self) -> None:
        self.is_up = True
        self.written: list[Call] = []

    def write(self, call: Call) -> None:
        if not self.is_up:
            raise StoreUnavailable("down")
        if call.body == b"broken":
            raise ValueError("cannot be recorded")
        self.written.append(call)

    @property
    def numbers(self) -> list[int]:
        return [int(call.id, 16) for call in self.written]


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(recording, "_LONGEST_PAUSE", 0.02)


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asynchronous.run(asyncio.wait_for(work(), 30))


def test_calls_are_recorded_in_their_order(store: Store, tmp_path: Path) -> None:
    async def work() -> None:
        recorder = Recorder(Spool(tmp_path), store.write)
        recorder.start()
        for number in range(50):
            await recorder.add(call(number))
        await recorder.settle()
        await recorder.stop()

    run(work)
    assert store.numbers == list(range(50))
    assert list(tmp_path.iterdir()) == []


def test_while_the_store_is_down_calls_wait_on_disk_and_keep_their_order(
    store: Store, tmp_path: Path
) -> None:
    async def work() -> None:
        recorder = Recorder(Spool(tmp_path), store.write)
        recorder.start()
        await recorder.add(call(0))
        await recorder.settle()
        store.is_up = False
        for number in range(1, 6):
            await recorder.add(call(number))
        while len(list(tmp_path.glob("*.call"))) < 5:
            await asyncio.sleep(0.01)
        assert all(SECRET not in file.read_bytes() for file in tmp_path.iterdir())
        store.is_up = True
        await recorder.add(call(6))
        await recorder.settle()
        await recorder.add(call(7))
        await recorder.settle()
        await recorder.stop()

    run(work)
    assert store.numbers == list(range(8))
    assert store.written[3] == call(3)
    assert list(tmp_path.iterdir()) == []


def test_calls_that_wait_survive_a_restart_and_a_clock_that_is_set_back(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = count(10**18, -(10**12))
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))

    async def work() -> None:
        store.is_up = False
        first = Recorder(Spool(tmp_path), store.write)
        first.start()
        for number in range(4):
            await first.add(call(number))
        await first.stop()
        (tmp_path / "copy.call").write_bytes(b"made by another program")
        store.is_up = True
        second = Recorder(Spool(tmp_path), store.write)
        second.start()
        await second.add(call(4))
        await second.settle()
        await second.stop()

    run(work)
    assert store.numbers == list(range(5))


def test_calls_are_stored_on_disk_while_the_store_hangs(store: Store, tmp_path: Path) -> None:
    is_released = threading.Event()

    def hang(call: Call) -> None:
        is_released.wait(30)

    async def work() -> None:
        recorder = Recorder(Spool(tmp_path), hang, most_calls=3)
        recorder.start()
        for number in range(5):
            await asyncio.wait_for(recorder.add(call(number)), 10)
        stopping = asyncio.create_task(recorder.stop())
        while len([*tmp_path.glob("*.call")]) < 5:  # before the gateway is killed
            await asyncio.sleep(0.01)
        is_released.set()
        await stopping
        again = Recorder(Spool(tmp_path), store.write)
        again.start()
        await again.settle()
        await again.stop()

    run(work)
    assert sorted(store.numbers) == [*range(5)]


def test_the_queue_is_bounded_and_the_rest_goes_to_disk(store: Store, tmp_path: Path) -> None:
    async def work() -> None:
        recorder = Recorder(Spool(tmp_path), store.write, most_calls=3, most_bytes=10**6)
        for number in range(10):  # not started yet: nothing leaves the queue
            await recorder.add(call(number))
        assert recorder.waiting == 3
        assert len(list(tmp_path.glob("*.call"))) == 7
        recorder.start()
        await recorder.settle()
        await recorder.stop()

    run(work)
    assert store.numbers == list(range(10))


def test_a_call_that_cannot_be_recorded_is_deleted(store: Store, tmp_path: Path) -> None:
    async def work() -> None:
        recorder = Recorder(Spool(tmp_path), store.write, most_calls=1)
        for number, body in enumerate([b"fine", b"broken", b"fine"]):
            await recorder.add(call(number, body))
        (tmp_path / "00000000000000000000-x.call").write_bytes(b"not a call")
        recorder.start()
        await recorder.settle()
        await recorder.stop()

    run(work)
    assert store.numbers == [0, 2]
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".rejected"]


def test_incomplete_and_old_unreadable_calls_are_deleted_at_the_start(tmp_path: Path) -> None:
    for name in ("killed.partial", "old.rejected", "new.rejected"):
        (tmp_path / name).write_bytes(b"encrypted")
    month_ago = time.time() - 31 * 86_400
    os.utime(tmp_path / "old.rejected", (month_ago, month_ago))
    Spool(tmp_path).add(call(1))
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".call", ".rejected"]
    assert (tmp_path / "new.rejected").exists()


@pytest.mark.parametrize("room", [0, 2])
def test_on_a_full_disk_calls_wait_in_memory_and_keep_their_order(
    store: Store, tmp_path: Path, room: int
) -> None:
    refused: list[Call] = []

    class FullDisk(Spool):
        def add(self, call: Call) -> None:
            if len(list(tmp_path.glob("*.call"))) >= room:
                refused.append(call)
                raise OSError(28, "No space left on device")
            super().add(call)

    async def work() -> None:
        store.is_up = False
        recorder = Recorder(FullDisk(tmp_path), store.write, most_calls=5)
        for number in range(4):
            await recorder.add(call(number))
        recorder.start()
        while not refused or recorder.waiting != 4 - room:
            await asyncio.sleep(0.01)
        for number in range(4, 5 + room + 1):  # there is no room for the last one
            await recorder.add(call(number))
        assert recorder.waiting == 5
        store.is_up = True
        await recorder.settle()
        await recorder.stop()

    run(work)
    assert store.numbers == list(range(5 + room))


@pytest.mark.parametrize("stops", [False, True])
def test_calls_on_their_way_to_the_disk_keep_their_order(store: Store, tmp_path: Path, stops: bool) -> None:
    has_begun, is_released = threading.Event(), threading.Event()

    class SlowDisk(Spool):
        def add(self, call: Call) -> None:
            if not self.is_empty:
                has_begun.set()
                is_released.wait(30)
            super().add(call)

    async def work() -> None:
        store.is_up = False
        recorder = Recorder(SlowDisk(tmp_path), store.write)
        for number in range(4):
            await recorder.add(call(number))
        recorder.start()
        await asyncio.to_thread(has_begun.wait)
        work = asyncio.create_task(recorder.stop() if stops else recorder.add(call(4)))
        await asyncio.sleep(0)
        is_released.set()
        await work
        store.is_up = True
        if stops:
            recorder = Recorder(Spool(tmp_path), store.write)
            recorder.start()
        await recorder.settle()
        await recorder.stop()

    run(work)
    assert store.numbers == list(range(4 if stops else 5))


def test_a_call_that_cannot_be_deleted_from_the_disk_stops_nothing(store: Store, tmp_path: Path) -> None:
    class ReadOnlyDisk(Spool):
        def remove(self, file: Path) -> None:
            if len(store.numbers) < 3:
                raise OSError(30, "Read-only file system")
            super().remove(file)

    async def work() -> None:
        recorder = Recorder(ReadOnlyDisk(tmp_path), store.write, most_calls=1)
        for number in range(3):
            await recorder.add(call(number))
        recorder.start()
        await recorder.settle()
        await recorder.stop()

    run(work)
    assert store.numbers == [0, 1, 1, 2]  # the store recognizes the second one


def test_a_call_is_packed_and_unpacked() -> None:
    given = replace(
        call(1, b"\n\0body"), response=b"\nresponse", status=200, first_token_ms=3, is_complete=True
    )
    assert Call.unpack(given.pack()) == given


@pytest.mark.slow
def test_agents_notice_nothing_while_the_store_is_down(
    gateway: Running, provider: Provider, api_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object) -> None:
        raise OperationalError("the connection is closed")

    reply = streamed(text("Hello."))
    provider.otherwise = lambda _: reply
    sent = {"x-contextapp-key": api_key, "x-api-key": "sk", "x-session-id": "s"}
    monkeypatch.setattr(callers, "_CACHE_SECONDS", 0)
    gateway.call("/anthropic/v1/models", None, sent, method="GET")  # the gateway knows the key
    with monkeypatch.context() as patched:
        patched.setattr(callers, "api_key_find", down)
        patched.setattr("gateway.recording.record.key_find", down)
        for _ in range(3):
            response = gateway.call(
                "/anthropic/v1/messages", request({"role": "user", "content": "Hi."}), sent
            )
            assert (response.status, response.body) == (200, b"".join(reply.parts))
        assert not AgentSession.objects.exists()
    gateway.settle()
    assert AgentSession.objects.get(external_id="s").turn_count == 1  # the same request, three times
