"""Measure how much the search index slows down pushes.

    python -m bench.search_pushes [--rounds 10] [--pushes 100]

Starts two separate instances, of which one never indexes, and pushes turns to them alternately. Prints the
median time of a push and the CPU time of all processes of the instance per push, which includes indexing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.http import Http
from bench.instance import Instance, started
from bench.load import Load, create_session, push
from bench.processes import cpu_seconds, processes

#: Seconds in which the worker indexes the messages of a round.
_INDEXING_SECONDS = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--pushes", type=int, default=100, help="pushes per round")
    parser.add_argument("--port", type=int, default=21_400)
    options = parser.parse_args()
    with _instance(options.port, "2") as on, _instance(options.port + 10, "864000") as off:
        figures = {"on": _Figures(on), "off": _Figures(off)}
        for number in range(options.rounds + 1):
            for name in ("on", "off") if number % 2 else ("off", "on"):
                figures[name].round(number, options.pushes)
        for name, each in figures.items():
            print(
                f"index {name}: p50 {statistics.median(each.times):.2f} ms "
                f"(lowest of a round {min(each.times):.2f}), "
                f"CPU {statistics.median(each.cpu):.2f} ms per push (lowest {min(each.cpu):.2f})"
            )
        ratios = [one / other for one, other in zip(figures["on"].times, figures["off"].times, strict=True)]
        print(f"ratio of p50 by round: median {statistics.median(ratios):.3f}")


@contextmanager
def _instance(port: int, seconds: str) -> Iterator[Instance]:
    os.environ["CONTEXTAPP_SEARCH_SECONDS"] = seconds
    with started(port) as instance:
        yield instance


class _Figures:
    """The median time and the CPU time of a push in each round but the first."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.times: list[float] = []
        self.cpu: list[float] = []

    def round(self, number: int, pushes: int) -> None:
        client: Http = self.instance.ours()
        session, load = create_session(client, f"search-{number}", None), Load(number)
        before = cpu_seconds(processes(self.instance.pid))
        times = [push(client, session, load, load.turn()) for _ in range(pushes)]
        time.sleep(_INDEXING_SECONDS)
        if number:
            self.times.append(statistics.median(times))
            self.cpu.append(1_000 * (cpu_seconds(processes(self.instance.pid)) - before) / pushes)


if __name__ == "__main__":
    main()
