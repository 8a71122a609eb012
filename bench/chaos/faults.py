"""The faults: kills, stops and wrong clocks of each part and of everything at once, and a full disk."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from threading import Event

from bench.chaos.clock import EVERYTHING
from bench.chaos.instance import Instance
from bench.processes import PARTS

#: Seconds for which a part is stopped, and for which the disk is full.
STOPPED, FULL = (2.0, 8.0), 8.0

#: Seconds by which a clock is wrong, forward or back, and for which it is.
SHIFT, WRONG = (30, 7_200), (2.0, 8.0)

#: Seconds between the end of a fault and the next one.
PAUSE = (1.0, 4.0)


class Faults:
    """Cause faults until `done` is set. `counts` counts them by name."""

    def __init__(self, instance: Instance, seed: int) -> None:
        self._instance, self._random = instance, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.recoveries: list[float] = []

    def run(self, done: Event) -> None:
        names = self._names()
        while not done.is_set():
            name, cause = names[self.counts.total() % len(names)]
            if self.counts.total() % len(names) == 0:
                self._random.shuffle(names)
                name, cause = names[0]
            self.counts[name] += 1
            print(f"  {time.strftime('%H:%M:%S')} {name}", flush=True)
            cause()
            done.wait(self._random.uniform(*PAUSE))

    def _names(self) -> list[tuple[str, Callable[[], None]]]:
        kills = [(f"kill {part}", lambda part=part: self._kill(part)) for part in PARTS]
        stops = [(f"stop {part}", lambda part=part: self._stop(part)) for part in PARTS]
        one = [(f"kill one process of {part}", lambda part=part: self._kill_one(part)) for part in PARTS]
        disk = [("full disk", self._fill_disk)] if self._instance.has_disk else []
        whole = [("kill everything", self._kill_everything)]
        clocks = [(f"wrong clock of {part}", lambda part=part: self._shift_clock(part)) for part in PARTS]
        if self._instance.clock.is_available:
            whole += [*clocks, ("wrong clock everywhere", lambda: self._shift([EVERYTHING]))]
        return [*kills, *one, *stops, *disk, *whole]

    def _kill(self, part: str) -> None:
        self._signal(self._instance.part(part), signal.SIGKILL)

    def _kill_one(self, part: str) -> None:
        self._signal(self._instance.part(part)[-1:], signal.SIGKILL)

    def _stop(self, part: str) -> None:
        pids = self._instance.part(part)
        self._signal(pids, signal.SIGSTOP)
        time.sleep(self._random.uniform(*STOPPED))
        self._signal(pids, signal.SIGCONT)

    def _shift_clock(self, part: str) -> None:
        self._shift(self._instance.part(part))

    def _shift(self, entries: list[int]) -> None:
        seconds = self._random.choice((-1, 1)) * self._random.randint(*SHIFT)
        self._instance.clock.shift(entries, seconds)
        time.sleep(self._random.uniform(*WRONG))
        self._instance.clock.shift(entries, 0)

    def _kill_everything(self) -> None:
        self._instance.kill_everything()
        begun = time.monotonic()
        self._instance.start()
        self.recoveries.append(time.monotonic() - begun)

    def _fill_disk(self) -> None:
        ballast = self._instance.folder / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
        time.sleep(FULL)
        ballast.unlink(missing_ok=True)

    def _signal(self, pids: list[int], number: signal.Signals) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
