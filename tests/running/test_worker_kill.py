"""A worker that is killed takes its scheduler and the processes that run tasks with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from contextapp import env
from contextapp.embedded import servers as programs
from contextapp.embedded.programs import Child, Program
from tests.background.world import eventually
from tests.running.instance import alive, children

pytestmark = pytest.mark.processes

FORKS = """
import os, time
from contextapp.forks import end_forks_with_this_process

end_forks_with_this_process()
for _ in range(2):
    if not os.fork():
        print("forked", flush=True)
        time.sleep(600)
input()
"""


@pytest.fixture
def program(servers: None, tmp_path: Path) -> Program:
    worker = programs.worker(tmp_path)
    environment = {
        **worker.environment,
        "DJANGO_SETTINGS_MODULE": "tests.running.long_task_settings",
        "CONTEXTAPP_TEST_HOME": str(settings.HOME),
        "CONTEXTAPP_TEST_STOP_SECONDS": "1",
        "PYTHONPATH": str(Path.cwd()),
    }
    return replace(worker, environment=environment, log=tmp_path / "log", nice=0)


@pytest.fixture
def worker(program: Program) -> Iterator[Child]:
    child = Child(program)
    yield child
    child.stop()


def forked(worker: Child) -> set[int]:
    """Return the processes of a worker once it runs all of them: those of its tasks, and the scheduler."""
    count = env.worker_processes() + 1
    return set(eventually(lambda: found if len(found := children(worker.process.pid)) == count else None))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_its_processes_end_and_its_successor_has_one_scheduler(worker: Child, program: Program) -> None:
    former = forked(worker)
    worker.process.kill()
    worker.process.wait()
    assert eventually(lambda: not alive(former))
    successor = Child(program)
    try:
        assert not forked(successor) & former
    finally:
        successor.stop()


def test_forked_processes_end_with_their_parent_on_other_systems() -> None:
    pipe = subprocess.PIPE
    parent = subprocess.Popen([sys.executable, "-c", FORKS], stdin=pipe, stdout=pipe)
    assert parent.stdout is not None
    assert [parent.stdout.readline() for _ in range(2)] == [b"forked\n"] * 2
    parent.kill()
    parent.communicate(timeout=60)  # all of them inherited the pipe, so it is closed when the last one ends
