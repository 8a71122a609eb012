"""Starts the programs, looks after them, and ends them in the reverse order.

A program that ends by itself is started again, after a pause that doubles each time. One that keeps
ending takes the whole instance down with one clear line: a half-working instance helps nobody, and
whoever supervises us (a person, systemd, a container) sees it at once.
"""

from __future__ import annotations

import time

from contextapp.embedded.errors import StartError
from contextapp.embedded.programs import Child, Program, say

# So many ends within so many seconds, and we give up. The pauses in between make 7.5 seconds.
ENDS, WITHIN_SECONDS = 5, 120.0
FIRST_PAUSE = 0.5
POLL_SECONDS = 0.2


class Supervised:
    """A program with the history of its ends."""

    def __init__(self, program: Program) -> None:
        self.child = Child(program)
        self.ends: list[float] = []
        self.restart_at: float | None = None

    def look(self, now: float) -> None:
        """Raises StartError when the program has ended too often."""
        name = self.child.program.name
        if self.restart_at is None and self.child.has_ended:
            self.child.end_group()
            self.ends = [end for end in self.ends if now - end < WITHIN_SECONDS] + [now]
            if len(self.ends) >= ENDS:
                raise StartError(f"{name} ended {ENDS} times in a short while; giving up.")
            pause = FIRST_PAUSE * 2 ** (len(self.ends) - 1)
            self.restart_at = now + pause
            say(f"{name} ended ({self.child.process.returncode}); starting it again in {pause:g} s.")
        elif self.restart_at is not None and now >= self.restart_at:
            self.restart_at = None
            self.child = Child(self.child.program)


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
