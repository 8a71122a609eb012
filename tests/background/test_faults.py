"""After servers are killed, all work finishes within a minute, exactly once, and no turn is lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import pytest
from celery import Celery

from sessions.services.dispatch import COMPACTION_RUN
from tests.background.world import OTHER_BROKER, PATIENCE, World, eventually, turn
from tests.provider.behaviours import delayed, summary
from tests.running.instance import alive

stops_the_broker = pytest.mark.skipif(bool(OTHER_BROKER), reason="the broker is not ours to stop")


def fills(world: World, session: str, until: str = "soft") -> int:
    """Push until the next push triggers. Returns its number."""
    for number in range(30):
        pushed = world.push(session, number)
        assert not pushed["fired"]
        if pushed["prompt"]["occupancy"] > 0.6:
            return number + 1
    raise AssertionError("never full")


def in_background(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def running(world: World, session: str) -> bool:
    return world.compactions(session)[-1]["state"] == "running"


def test_a_worker_killed_during_the_model_call(world: World) -> None:
    go_on = Event()
    world.provider.otherwise = delayed(summary(), go_on)
    session, _ = world.fire()
    eventually(lambda: world.provider.requests)
    family = world.processes("contextapp.worker")
    os.kill(family[0], signal.SIGKILL)
    eventually(lambda: not alive(family))  # including the processes that it forked
    go_on.set()
    [done] = world.settled(session)
    assert done["state"] == "done"
    assert world.rows("SELECT attempts FROM agent_sessions_compaction ORDER BY id DESC LIMIT 1") == [
        {"attempts": 2}
    ]


def test_one_process_of_the_worker_killed_during_the_model_call(world: World) -> None:
    go_on = Event()
    world.provider.otherwise = delayed(summary(), go_on)
    session, _ = world.fire()
    eventually(lambda: world.provider.requests)
    asking = connected(world.processes("contextapp.worker"), urlsplit(world.provider.url).port or 0)
    assert asking
    for process in asking:  # one is calling; another may have kept its connection from an earlier summary
        os.kill(process, signal.SIGKILL)
    go_on.set()
    [done] = world.settled(session)
    assert done["state"] == "done"


def connected(pids: list[int], port: int) -> set[int]:
    """Return the processes with a connection to a local port."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    to_port = {line[9] for line in lines if int(line[2].split(":")[1], 16) == port and line[3] == "01"}
    sockets = {f"socket:[{inode}]" for inode in to_port}
    return {pid for pid in pids if any(delayed in sockets for delayed in open_files(pid))}


def open_files(pid: int) -> list[str]:
    return [str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink()]


@stops_the_broker
def test_the_web_server_killed_between_commit_and_dispatch(world: World) -> None:
    session = world.session()
    number = fills(world, session)
    world.kill("valkey-server", signal.SIGSTOP)  # accepts connections only
    try:
        body = {"messages": turn(number)}
        pushing = in_background(lambda: world.stubborn("POST", f"sessions/{session}/turns/", body, "k"))
        sql = """SELECT c.id FROM agent_sessions_compaction c JOIN agent_sessions_agentsession s
                   ON s.id = c.session_id WHERE s.external_id = %s"""
        eventually(lambda: world.rows(sql, session))  # committed
        world.kill("http_server web")
    finally:
        world.kill("valkey-server", signal.SIGCONT)
    pushing.join(PATIENCE)
    [done] = world.settled(session)
    assert done["state"] == "done"
    assert len(world.call("GET", f"sessions/{session}/turns/")[1]["data"]) == number + 1


@stops_the_broker
def test_an_unresponsive_broker_does_not_delay_pushes(world: World) -> None:
    session = world.session()
    number = fills(world, session)
    world.kill("valkey-server", signal.SIGSTOP)
    try:
        started = time.monotonic()
        fired = world.push(session, number)["fired"]
        took = time.monotonic() - started
    finally:
        world.kill("valkey-server", signal.SIGCONT)
    assert fired[0]["state"] == "pending"
    assert took < 15  # the half-second timeout, with a margin for busy machines
    [done] = world.settled(session)
    assert done["state"] == "done"


@stops_the_broker
def test_a_broker_killed_and_started_empty(world: World) -> None:
    world.provider.otherwise = summary(delay=1)
    sessions = [world.fire()[0] for _ in range(4)]
    world.kill("valkey-server")
    for session in sessions:
        [done] = world.settled(session)
        assert done["state"] == "done"
    assert "Valkey ended (exit code -9). Restarting it" in world.instance.printed


@stops_the_broker
def test_a_killed_scheduler_is_started_again(world: World) -> None:
    parent, *forked = world.processes("contextapp.worker")  # the scheduler is one of them
    for process in forked:
        os.kill(process, signal.SIGKILL)
    eventually(lambda: "The scheduler ended (exit code -9). Restarting it" in world.instance.printed)
    eventually(lambda: len(world.processes("contextapp.worker")) == 1 + len(forked))
    assert world.processes("contextapp.worker")[0] == parent
    session, _ = world.fire()
    world.kill("valkey-server")  # loses the task, which the scheduler then sends again
    [done] = world.settled(session)
    assert done["state"] == "done"


def test_a_database_restarted_under_load(world: World) -> None:
    sessions = [world.session() for _ in range(4)]

    def work(session: str) -> None:
        for number in range(12):
            body = {"messages": turn(number)}
            world.stubborn("POST", f"sessions/{session}/turns/", body, f"k{number}")

    with ThreadPoolExecutor(4) as pool:
        working = [pool.submit(work, session) for session in sessions]
        eventually(lambda: world.provider.requests)
        os.kill(world.processes("bin/postgres")[0], signal.SIGQUIT)  # immediately, without a checkpoint
        for one in working:
            one.result(PATIENCE)
    eventually(world.is_ready)
    for session in sessions:
        stored = world.rows(
            "SELECT turn_count FROM agent_sessions_agentsession WHERE external_id = %s", session
        )
        assert stored == [{"turn_count": 12}]
        assert any(one["state"] == "done" for one in world.settled(session))


def test_at_most_one_request_fails_after_the_database_has_restarted(world: World) -> None:
    with ThreadPoolExecutor(8) as pool:  # opens all connections of the web server
        assert {status for status, _ in pool.map(lambda _: world.call("GET", "usage/"), range(40))} == {200}
    os.kill(world.processes("bin/postgres")[0], signal.SIGQUIT)
    world.rows("SELECT 1")  # waits for the database
    statuses = [world.call_once("GET", "usage/")[0] for _ in range(10)]
    assert statuses.count(200) >= 9, statuses


def test_repeated_tasks_and_concurrent_sweeps(world: World) -> None:
    world.provider.otherwise = summary(delay=0.5)
    with Celery(broker=world.broker, set_as_current=False) as app:
        session, fired = world.fire()
        [row] = world.rows(
            """SELECT c.id FROM agent_sessions_compaction c JOIN agent_sessions_agentsession s
                 ON s.id = c.session_id WHERE s.external_id = %s""",
            session,
        )
        for _ in range(4):
            app.send_task(COMPACTION_RUN, args=[str(row["id"])])
            app.send_task("sessions.tasks.compactions_sweep")
        [done] = world.settled(session)
        app.send_task(COMPACTION_RUN, args=[str(row["id"])])
    assert done["state"] == "done"
    assert done["number"] == fired["compaction"]
    assert len(world.provider.requests) == 1


def test_many_sessions_trigger_at_once(world: World) -> None:
    world.provider.otherwise = summary(delay=0.1)
    with ThreadPoolExecutor(8) as pool:
        sessions = [session for session, _ in pool.map(lambda _: world.fire(), range(20))]
    eventually(world.all_settled)
    for session in sessions:
        assert [one["state"] for one in world.settled(session)] == ["done"]
    assert len(world.provider.requests) == 20


def test_a_revert_during_the_model_call_wins(world: World) -> None:
    session, _ = world.fire()
    world.settled(session)
    go_on = Event()
    world.provider.otherwise = delayed(summary(), go_on)
    world.provider.requests.clear()
    number = 100
    while not world.push(session, number)["fired"]:
        number += 1
    eventually(lambda: running(world, session) and world.provider.requests)
    assert world.call("POST", f"sessions/{session}/compactions/1/revert/")[0] == 200
    go_on.set()
    second = eventually(lambda: not running(world, session) and world.compactions(session)[1])
    assert second["state"] == "skipped"
    assert second["reason"].startswith("superseded")
    assert second["cost_microusd"] > 0
