"""Measure contextapp, compared with bare Django REST framework views on the same Postgres.

    python -m bench                       # about four minutes on two idle cores
    python -m bench --json figures.json   # also write the figures of each round
    python -m bench --quick               # a minute, less precise
    python -m bench --stores              # also compare the stores of agent frameworks

Starts a separate instance in a temporary folder with the embedded, durable Postgres. `bench/README.md`
explains the rows.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from bench import footprint, pushes, reads, stores
from bench.instance import started
from bench.table import Row, report


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="alternating rounds of each measurement")
    parser.add_argument("--quick", action="store_true", help="fewer turns per round")
    parser.add_argument("--stores", action="store_true", help="compare other stores, in-process")
    parser.add_argument("--only", nargs="+", choices=_PARTS, default=_PARTS, help="measure only these parts")
    parser.add_argument("--port", type=int, default=18_400)
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args()
    scale = 0.15 if options.quick else 1.0
    began, rows = time.monotonic(), []
    more: dict[str, Any] = {}
    with started(options.port) as instance:
        for part in options.only:
            at = time.monotonic()
            rows += _measure(part, instance, options.rounds, scale)
            print(f"{part}: {time.monotonic() - at:.0f} s", flush=True)
        if options.stores:
            more["stores"] = stores.compare(instance, turns=int(300 * scale))
    print(f"{options.rounds} rounds, {time.monotonic() - began:.0f} s\n")
    report(rows, options.json, **more)


#: Fetches come before the parts that push much, which the worker indexes for some time.
_PARTS = ("idle", "push", "fetch", "throughput", "read", "stored")


def _measure(part: str, instance: Any, rounds: int, scale: float) -> list[Row]:
    match part:
        case "idle":
            return footprint.idle(instance, rounds, 20 * scale)
        case "push":
            return pushes.latency(instance, rounds, int(300 * scale))
        case "fetch":
            return reads.fetches(instance, rounds, int(1_000 * scale))
        case "throughput":
            return pushes.throughput(instance, rounds, int(960 * scale))
        case "read":
            turns = int(10_000 * scale)
            return [*reads.long_session(instance, turns), *reads.reads(instance, rounds, turns)]
        case _:
            return footprint.stored(instance, int(1_600 * scale))


if __name__ == "__main__":
    main()
