"""Starts the programs, looks after them, and ends them in the reverse order.

A program that ends is started again. One that keeps failing is, after a pause that doubles each time, and in
the end takes the whole instance down with one clear line: a half-working instance helps nobody, and whoever
supervises us (a person, systemd, a container) sees it at once. Somebody who restarts a program (`kill` of the
worker, say) may do so as often as they like.
"""

from __future__ import annotations

import signal
import time

from contextapp.embedded.errors import StartError
from contextapp.embedded.programs import Child, Program, say

# So many failures within so many seconds, and we give up. The pauses in between make 7.5 seconds.
FAILURES, WITHIN_SECONDS = 5, 120.0
# How a program ends that was asked to. Sooner after its start that is a failure all the same.
ASKED = {0, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP}
SETTLED_SECONDS = 10.0
FIRST_PAUSE = 0.5
POLL_SECONDS = 0.2


class Supervised:
    """A program with the history of its failures."""

    def __init__(self, program: Program) -> None:
        self.child = Child(program)
        self.started_at = time.monotonic()
        self.failures: list[float] = []
        self.restart_at: float | None = None

    def look(self, now: float) -> None:
        """Raises StartError when the program has failed too often."""
        if self.restart_at is None and self.child.has_ended:
            self.child.end_group()
            pause = self._pause(now)
            self.restart_at = now + pause
            told = f"ended ({self.child.process.returncode}); starting it again in {pause:g} s."
            say(f"{self.child.program.name} {told}")
        elif self.restart_at is not None and now >= self.restart_at:
            self.restart_at = None
            self.child = Child(self.child.program)
            self.started_at = now

    def _pause(self, now: float) -> float:
        """Seconds until the program that has ended is started again."""
        if self.child.process.returncode in ASKED and now - self.started_at >= SETTLED_SECONDS:
            return FIRST_PAUSE
        self.failures = [failure for failure in self.failures if now - failure < WITHIN_SECONDS] + [now]
        if len(self.failures) >= FAILURES:
            name = self.child.program.name
            raise StartError(f"{name} ended {FAILURES} times in a short while; giving up.")
        return FIRST_PAUSE * 2.0 ** (len(self.failures) - 1)


class Supervisor:
    """Use as a context: whatever leaves the block, everything that was started is ended."""

    def __init__(self) -> None:
        self.running: list[Supervised] = []

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        for supervised in reversed(self.running):
            supervised.child.stop()

    def start(self, *programs: Program) -> None:
        """Start the programs at once and wait until all are ready."""
        for program in programs:
            self.running.append(Supervised(program))
        for supervised in self.running[-len(programs) :]:
            supervised.child.wait_until_ready()

    def watch(self) -> None:
        """Look after the programs until a signal raises out of here."""
        while True:
            time.sleep(POLL_SECONDS)
            for supervised in self.running:
                supervised.look(time.monotonic())
