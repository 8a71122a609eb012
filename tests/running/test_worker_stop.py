"""A worker with a long task ends within its grace period."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from contextapp.celery import app
from contextapp.embedded import servers as programs
from contextapp.embedded.programs import Child
from tests.background.world import eventually

pytestmark = [pytest.mark.processes, pytest.mark.slow]


def test_a_worker_with_a_long_task_stops_without_being_killed(
    servers: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = programs.worker()
    environment = {
        **worker.environment,
        "DJANGO_SETTINGS_MODULE": "tests.running.long_task_settings",
        "CONTEXTAPP_TEST_HOME": str(settings.HOME),
        "PYTHONPATH": str(Path.cwd()),
    }
    log = tmp_path / "log"
    # At its usual niceness, the worker would be starved by other tests.
    child = Child(replace(worker, environment=environment, log=log, nice=0))
    started = tmp_path / "started"
    try:
        app.send_task("tests.long_task", args=[str(started)], queue="stopping")
        eventually(started.exists)
    finally:
        child.stop()
    assert child.process.returncode == 0, log.read_text()
    assert "did not stop" not in capsys.readouterr().err
