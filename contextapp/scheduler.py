"""The scheduler of the periodic tasks: `python -m contextapp.scheduler --schedule FILE`.

This Celery application sends tasks by name. It loads neither Django nor the tasks, which halves its memory.
Celery's command line (`celery -A contextapp.scheduler beat`) also works, but loads a terminal library.
"""

import argparse
import os
import time
from importlib import import_module
from typing import Any

from celery import Celery
from celery.apps.beat import Beat
from celery.beat import PersistentScheduler, Service

from contextapp.activity import Activity, connection_parameters

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")

#: Seconds after the last write to the database until the scheduler slows down. Within this time, the sweeps
#: find the compactions of a worker that has died.
QUIET_AFTER = 60.0
#: While the scheduler is slowed down, it sends due tasks every `QUIET_PERIOD` seconds. It detects the next
#: write within `CHECK_SECONDS`.
QUIET_PERIOD, CHECK_SECONDS = 60.0, 2.0


class QuietScheduler(PersistentScheduler):  # type: ignore[misc]  # Celery is untyped
    """Sends due tasks less often while nothing is written to the database: most have nothing to do."""

    def __init__(self, *args: Any, **options: Any) -> None:
        settings = import_module(os.environ["DJANGO_SETTINGS_MODULE"])
        self.activity = Activity(connection_parameters(settings.DATABASES["default"]))
        self.resume_at = float("-inf")
        super().__init__(*args, **options)

    def tick(self, *args: Any, **options: Any) -> float:
        """Send the next due task. Return the seconds until the next call."""
        self._forget_future_runs()
        if self.activity.quiet_seconds() < QUIET_AFTER:
            return float(super().tick(*args, **options))
        if time.monotonic() < self.resume_at:
            return CHECK_SECONDS
        seconds = float(super().tick(*args, **options))
        if seconds > 0:  # all due tasks are sent
            self.resume_at = time.monotonic() + QUIET_PERIOD
        return min(seconds, CHECK_SECONDS)

    def _forget_future_runs(self) -> None:
        """Count from now on if the clock was set back. Otherwise, tasks would wait until the former time."""
        future = [entry for entry in self.schedule.values() if entry.last_run_at > entry.default_now()]
        for entry in future:
            entry.last_run_at = entry.default_now()
        if future:
            self._heap = None  # sorted by the former times; Celery creates it again

    def adjust(self, seconds: float, drift: float = 0.0) -> float:
        """Return the time until a task is due. Celery subtracts 10 ms, and then busy-waits for that time."""
        return seconds


class ReadyService(Service):  # type: ignore[misc]
    """Create the schedule before the signal handler is installed.

    Celery's signal handler creates the schedule on first access. A signal that arrives during its creation
    would start a second creation, which fails.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.scheduler = self.get_scheduler()


class ReadyBeat(Beat):  # type: ignore[misc]
    Service = ReadyService


app = Celery("contextapp", set_as_current=False, fixups=[])
app.Beat = app.subclass_with_self(ReadyBeat)
app.config_from_object(os.environ["DJANGO_SETTINGS_MODULE"], namespace="CELERY")
app.conf.beat_scheduler = QuietScheduler


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m contextapp.scheduler")
    parser.add_argument("--schedule", required=True, help="file in which the last runs are stored")
    run(parser.parse_args().schedule)


def run(schedule: str) -> None:
    """Send the periodic tasks until a signal arrives. The file `schedule` keeps when each was last sent."""
    app.Beat(schedule=schedule, loglevel="WARNING", quiet=True).run()


if __name__ == "__main__":
    main()
