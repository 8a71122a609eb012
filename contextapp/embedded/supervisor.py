"""Start programs, restart those that end, and stop all of them in reverse order.

A program that keeps failing is restarted after increasing pauses. After `MAX_FAILURES` a message names the
cause, and the pauses remain long: once the cause is gone, for example a full disk, the instance resumes.
Restarts on request, for example by `kill`, are immediate.
"""

from __future__ import annotations

import signal
import time

from contextapp.embedded.programs import Child, Program, write_line

# After this many failures within this many seconds, restarts are rare. The pauses before add up to 7.5 s.
MAX_FAILURES, FAILURE_WINDOW = 5, 120.0
LONG_PAUSE = 30.0
# Exit codes of a program that was stopped on request. Shortly after the start they count as failures too.
STOPPED_CODES = {0, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP}
SETTLED_SECONDS = 10.0
FIRST_PAUSE = 0.5
POLL_SECONDS = 0.2


class SupervisedProgram:
    """A program and its recent failures."""

    def __init__(self, program: Program) -> None:
        self.child = Child(program)
        self.started_at = time.monotonic()
        self.failures: list[float] = []
        self.keeps_failing = False
        self.restart_at: float | None = None

    def check(self, now: float) -> None:
        """Restart the program if it has ended, after a pause."""
        if self.restart_at is None and self.child.has_ended:
            self.child.kill_group()
            pause = self._pause(now)
            self.restart_at = now + pause
            name, code = self.child.program.name, self.child.process.returncode
            if pause < LONG_PAUSE:
                write_line(f"{name} ended (exit code {code}). Restarting it in {pause:g} s.")
            else:
                failures = f"{MAX_FAILURES} times in {FAILURE_WINDOW:.0f} s{self.child.reason()}"
                write_line(f"{name} failed {failures}. Trying again every {pause:g} s.")
        elif self.restart_at is not None and now >= self.restart_at:
            self.restart_at = None
            self.child = Child(self.child.program)
            self.started_at = now

    def _pause(self, now: float) -> float:
        """Return the seconds to wait before the restart."""
        if self.child.process.returncode in STOPPED_CODES and now - self.started_at >= SETTLED_SECONDS:
            return FIRST_PAUSE
        self.failures = [failure for failure in self.failures if now - failure < FAILURE_WINDOW] + [now]
        lasts = self.keeps_failing and now - self.started_at < FAILURE_WINDOW
        self.keeps_failing = lasts or len(self.failures) >= MAX_FAILURES
        if self.keeps_failing:
            return LONG_PAUSE
        return FIRST_PAUSE * 2.0 ** (len(self.failures) - 1)


class Supervisor:
    """A context manager that stops all programs on exit."""

    def __init__(self) -> None:
        self.running: list[SupervisedProgram] = []

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        for supervised in reversed(self.running):
            supervised.child.stop()

    def start(self, *programs: Program) -> None:
        """Start the programs together and wait until all of them are ready."""
        for program in programs:
            self.running.append(SupervisedProgram(program))
        for supervised in self.running[-len(programs) :]:
            supervised.child.wait_until_ready()

    def watch(self) -> None:
        """Restart programs that end, until a signal handler raises."""
        while True:
            time.sleep(POLL_SECONDS)
            for supervised in self.running:
                supervised.check(time.monotonic())
