"""The worker of the background tasks: `python -m contextapp.worker --processes 2 [--schedule FILE]`.

With `--schedule`, it also runs the scheduler. Celery's command line (`celery -A contextapp.celery worker`)
also works, but loads a terminal library, which the forked processes would share.
"""

import argparse
import logging
import multiprocessing
import os
import signal
import sys
from typing import Any

from celery.bootsteps import StartStopStep

from contextapp import scheduler
from contextapp.celery import app
from contextapp.embedded.launch import end_with_parent
from contextapp.forks import end_forks_with_this_process

log = logging.getLogger(__name__)

#: Seconds between two checks of the scheduler, and seconds that it has to stop.
CHECK_SECONDS, STOP_SECONDS = 2.0, 5.0

#: Signals that the worker handles.
HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)


class SchedulerStep(StartStopStep):  # type: ignore[misc]  # Celery is untyped
    """Runs the scheduler in a process that the worker forks, and restarts it if it ends.

    The processes share most of their memory. As a separate program, the scheduler would take 36 MB more.
    Celery's option `beat` also forks a process, but does not restart it.
    """

    #: Stop before the pool, which waits for its tasks: the scheduler would send more.
    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, *, schedule: str | None = None, **options: Any) -> None:
        self.enabled = schedule is not None
        self.schedule = schedule
        super().__init__(worker, **options)

    def start(self, worker: Any) -> None:
        self._fork()
        self.check = worker.timer.call_repeatedly(CHECK_SECONDS, self._restart_if_ended)

    def stop(self, worker: Any) -> None:
        self.check.cancel()  # timers run until the pool has stopped
        self.process.terminate()
        self.process.join(STOP_SECONDS)
        self.process.kill()

    terminate = stop

    def _fork(self) -> None:
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=run_scheduler, args=(self.schedule, os.getpid()), daemon=True)
        self.process.start()

    def _restart_if_ended(self) -> None:
        if not self.process.is_alive():
            log.warning("The scheduler ended (exit code %s). Restarting it.", self.process.exitcode)
            self._fork()


def run_scheduler(schedule: str, worker: int) -> None:
    """Run the scheduler in a process forked from the process `worker`, and end together with it."""
    for number in HANDLED:
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        end_with_parent(worker, signal.SIGTERM)
    scheduler.run(schedule)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m contextapp.worker")
    parser.add_argument("--processes", type=int, required=True, help="processes that run tasks")
    parser.add_argument("--schedule", help="run the scheduler too; it stores the last runs in this file")
    options = parser.parse_args()
    if sys.platform != "linux":  # On Linux, Celery has the kernel signal them.
        end_forks_with_this_process()
    app.steps["worker"].add(SchedulerStep)
    # Gossip, mingle and heartbeat coordinate several workers, but there is only one.
    worker = app.Worker(
        concurrency=options.processes,
        schedule=options.schedule,
        loglevel="WARNING",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    sys.exit(worker.exitcode)


if __name__ == "__main__":
    main()
