"""An instance starts after one was killed, whatever files and processes remained."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from contextapp.embedded import home as homes
from contextapp.embedded import postgres, servers
from contextapp.embedded.programs import Child, Program, launch_command
from contextapp.embedded.supervisor import Supervisor
from tests.background.world import eventually
from tests.running.instance import free_port

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    homes.prepare(tmp_path)
    postgres.ensure_cluster(tmp_path, fast=True)
    return tmp_path


@pytest.fixture
def process(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the user who owns the cluster that has nothing to do with Postgres."""
    program = ("sh", "-c", "echo ready; exec sleep 600")
    command = launch_command(program, stop_signal=signal.SIGTERM, owns=[home / "postgres"])
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        # Before that, it changes the owner of the files, as a server that starts at the same time would.
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def assert_starts(home: Path) -> None:
    postgres.stop_leftover(home)
    with Supervisor() as supervisor:
        supervisor.start(postgres.program(home, fast=True))
        assert postgres.accepts_connections(homes.postgres_sockets(home) / homes.POSTGRES_SOCKET)


@pytest.mark.parametrize("is_zombie", [False, True])
def test_lock_files_with_the_id_of_another_process(
    home: Path, process: subprocess.Popen[bytes], is_zombie: bool
) -> None:
    child = Child(postgres.program(home, fast=True))
    child.wait_until_ready()
    child.process.kill()
    child.process.wait()
    if is_zombie:
        process.kill()
    locks = (
        home / "postgres" / "postmaster.pid",
        homes.postgres_sockets(home) / f"{homes.POSTGRES_SOCKET}.lock",
    )
    for lock in locks:
        _, *lines = lock.read_text().splitlines()
        lock.write_text("\n".join([str(process.pid), *lines, ""]))
    assert_starts(home)
    assert is_zombie or process.poll() is None


def test_a_server_that_still_runs_is_stopped(home: Path) -> None:
    child = Child(postgres.program(home, fast=True))
    child.wait_until_ready()
    assert_starts(home)
    child.process.wait()


def test_remaining_processes_of_a_server_are_stopped(home: Path) -> None:
    child = Child(postgres.program(home, fast=True))
    child.wait_until_ready()
    [postmaster, *others] = postgres.server_pids(home / "postgres")
    assert others
    os.kill(postmaster, signal.SIGKILL)
    assert_starts(home)
    child.process.wait()


def test_a_server_ends_when_one_of_its_processes_is_killed(home: Path) -> None:
    """The supervisor then starts it again. A server that restarts its own processes may wait forever."""
    child = Child(postgres.program(home, fast=True))
    child.wait_until_ready()
    [_, process, *_] = postgres.server_pids(home / "postgres")
    os.kill(process, signal.SIGKILL)
    assert child.process.wait(60) != 0
    assert_starts(home)


@pytest.mark.parametrize("server", [servers.web, servers.gateway])
def test_a_server_whose_main_process_is_killed_frees_its_port(
    tmp_path: Path, server: Callable[[str, int], Program]
) -> None:
    host, port = "127.0.0.1", free_port()
    program = server(host, port)
    environment = {
        **program.environment,
        "DJANGO_SETTINGS_MODULE": "contextapp.settings",
        "CONTEXTAPP_HOME": str(tmp_path),
        "DATABASE_URL": "postgresql://127.0.0.1:1/none",
    }
    child = Child(replace(program, environment=environment))
    try:
        child.wait_until_ready()
        child.process.kill()
        eventually(lambda: servers.bind_error(host, port) is None)
    finally:
        child.stop()
