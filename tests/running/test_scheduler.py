"""A signal stops the scheduler without output. It rarely sends tasks while nothing is written."""

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery
from celery.beat import PersistentScheduler
from django.db import connection

from contextapp.activity import Activity, connection_parameters
from contextapp.scheduler import CHECK_SECONDS, QuietScheduler


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


class Reported:
    """Reports these seconds since the last write."""

    seconds = 0.0

    def quiet_seconds(self) -> float:
        return self.seconds


class Recording(QuietScheduler):
    """Records the names of the tasks that it would send."""

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        self.sent = [*getattr(self, "sent", []), entry.name]


def test_it_sends_due_tasks_rarely_after_a_minute_without_writes(tmp_path):
    app = Celery(broker="memory://", set_as_current=False, fixups=[])
    app.conf.beat_schedule = {"often": {"task": "none", "schedule": 0.0}}
    scheduler = Recording(app=app, schedule_filename=str(tmp_path / "schedule"))
    scheduler.activity = activity = Reported()  # type: ignore[assignment]
    assert [scheduler.tick(), scheduler.tick()] == [0.0, 0.0]
    assert scheduler.sent == ["often"] * 2
    activity.seconds = 61.0
    assert scheduler.tick() == 0.0
    scheduler.resume_at = float("inf")  # all due tasks are sent
    assert [scheduler.tick(), scheduler.tick()] == [CHECK_SECONDS] * 2
    assert scheduler.sent == ["often"] * 3
    activity.seconds = 0.0
    assert scheduler.tick() == 0.0
    assert scheduler.sent == ["often"] * 4
    scheduler.close()


def test_the_activity_of_the_database_is_seen(transactional_db, monkeypatch):
    monkeypatch.setattr("contextapp.activity.FRESH", 0.0)
    parameters = connection_parameters(connection.settings_dict)
    activity = Activity(parameters)
    assert activity.quiet_seconds() == 0.0
    # Other tests write to the same server.
    assert any(activity.quiet_seconds() > 0 for _ in range(1_000))
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE written (id int)")
        cursor.execute("DROP TABLE written")
    assert activity.quiet_seconds() == 0.0

    unreachable = Activity({**parameters, "host": "127.0.0.1", "port": "1"})
    assert [unreachable.quiet_seconds(), unreachable.quiet_seconds() > 1] == [0.0, False]


def test_it_sends_tasks_after_the_clock_was_set_back(tmp_path):
    app = Celery(broker="memory://", set_as_current=False, fixups=[])
    app.conf.beat_schedule = {name: {"task": name, "schedule": 0.01} for name in ("first", "second")}
    scheduler = Recording(app=app, schedule_filename=str(tmp_path / "schedule"))
    scheduler.activity = Reported()
    for entry in scheduler.schedule.values():
        entry.last_run_at += timedelta(hours=2)
    deadline = time.monotonic() + 5
    while len(set(getattr(scheduler, "sent", []))) < 2 and time.monotonic() < deadline:
        scheduler.tick()
    assert set(scheduler.sent) == {"first", "second"}
    scheduler.close()
