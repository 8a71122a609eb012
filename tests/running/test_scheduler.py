"""The scheduler stops without output when a signal arrives, even during its start."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from celery.beat import PersistentScheduler


class StoppedDuringStart(PersistentScheduler):
    def __init__(self, *args: Any, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        super().__init__(*args, **options)


class StoppedWhileRunning(PersistentScheduler):
    def tick(self, *args: Any, **options: Any) -> float:
        os.kill(os.getpid(), signal.SIGTERM)
        return 60.0


@pytest.mark.processes
@pytest.mark.parametrize(
    ("scheduler", "code"), [(StoppedDuringStart, -signal.SIGTERM), (StoppedWhileRunning, 0)]
)
def test_a_signal_stops_it_without_output(scheduler, code, tmp_path):
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "contextapp.scheduler", "beat"]
    options = [f"--scheduler={__name__}:{scheduler.__name__}", f"--schedule={tmp_path / 'schedule'}"]
    done = subprocess.run(
        [*command, *options, "--pidfile="], capture_output=True, text=True, timeout=180, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
