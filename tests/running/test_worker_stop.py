"""A worker that stops while a task runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from contextapp.celery import app
from contextapp.embedded import servers as programs
from contextapp.embedded.programs import Child
from tests.background.world import eventually

pytestmark = [pytest.mark.processes, pytest.mark.slow]


@pytest.fixture(params=[1, 600], ids=["soon", "late"])
def seconds(request: pytest.FixtureRequest) -> int:
    """Return the duration of the task."""
    return int(request.param)


@pytest.fixture
def stopped(servers: None, tmp_path: Path, seconds: int) -> Iterator[Child]:
    """Start a worker, and stop it while it runs a task."""
    worker = programs.worker(tmp_path)
    environment = {
        **worker.environment,
        "DJANGO_SETTINGS_MODULE": "tests.running.long_task_settings",
        "CONTEXTAPP_TEST_HOME": str(settings.HOME),
        # A worker must not wait longer than its tasks run.
        "CONTEXTAPP_TEST_STOP_SECONDS": "600" if seconds < 600 else "2",
        "PYTHONPATH": str(Path.cwd()),
    }
    # At its usual niceness, the worker would be starved by other tests.
    child = Child(replace(worker, environment=environment, log=tmp_path / "log", nice=0))
    started, ended = tmp_path / "started", tmp_path / "ended"
    try:
        app.send_task("tests.long_task", args=[str(started), str(ended), seconds], queue="stopping")
        eventually(started.exists)
    finally:
        child.stop()
    yield child
    with app.connection_for_write() as connection:
        connection.default_channel.queue_purge("stopping")


def test_a_worker_finishes_a_short_task_and_leaves_a_long_one_to_another_worker(
    stopped: Child, tmp_path: Path, seconds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    is_short = seconds < 600
    log = (tmp_path / "log").read_text()
    assert (stopped.process.returncode, "scheduler" in log) == (0, False), log
    assert "did not stop" not in capsys.readouterr().err
    assert (tmp_path / "ended").exists() is is_short
    with app.connection_for_read() as connection:
        waiting = connection.default_channel.queue_declare("stopping").message_count
    assert waiting == (0 if is_short else 1)
