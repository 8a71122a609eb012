"""The clock of the periodic tasks, asked to end while it starts."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from celery.beat import PersistentScheduler


class StoppedWhileMade(PersistentScheduler):
    def __init__(self, *args: Any, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        super().__init__(*args, **options)


class StoppedAtWork(PersistentScheduler):
    def tick(self, *args: Any, **options: Any) -> float:
        os.kill(os.getpid(), signal.SIGTERM)
        return 60.0


@pytest.mark.parametrize(("scheduler", "code"), [(StoppedWhileMade, -signal.SIGTERM), (StoppedAtWork, 0)])
def test_a_signal_ends_it_without_a_word(scheduler, code, tmp_path):
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "contextapp.clock", "beat"]
    options = [f"--scheduler={__name__}:{scheduler.__name__}", f"--schedule={tmp_path / 'schedule'}"]
    done = subprocess.run(
        [*command, *options, "--pidfile="], capture_output=True, text=True, timeout=180, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
