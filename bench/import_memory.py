"""Measure the memory of an instance before, during and after the import of a large log.

    python -m bench.import_memory --megabytes 60

Starts a separate instance, imports a small log, then one with one long session over REST, and prints the
memory (PSS) of its processes when idle before the second, at its highest, and at rest afterwards. Linux only.
"""

from __future__ import annotations

import argparse
import random
import time

import orjson

from bench.http import Http
from bench.instance import Instance, started
from bench.processes import memory

#: Seconds after the start, and after the import, in which the instance comes to rest.
_REST_SECONDS = 45

_MESSAGE_BYTES = 1_500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--times", type=int, default=1, help="imports, one after the other")
    parser.add_argument("--port", type=int, default=18_500)
    options = parser.parse_args()
    with started(options.port) as instance:
        _import(instance, "first", 1)  # the worker loads some modules when it first needs them
        time.sleep(_REST_SECONDS)
        idle = memory(instance.pid)
        print(f"idle: {_text(idle)}", flush=True)
        for number in range(options.times):
            highest = _import(instance, f"log-{number}", options.megabytes)
            print(f"highest during import {number + 1}: {highest / 1e6:.0f} MB", flush=True)
            time.sleep(_REST_SECONDS)
            after = memory(instance.pid)
            ratio = sum(after.values()) / sum(idle.values())
            print(f"at rest: {_text(after)}; {ratio:.2f} times idle", flush=True)


def _import(instance: Instance, name: str, megabytes: int) -> int:
    """Import a log and return the peak memory during the import in bytes."""
    http = Http(instance.port, instance.key)
    status, body = http.request("POST", f"/api/v1/imports/?name={name}.json", _log(name, megabytes))
    if status != 202:
        raise SystemExit(f"HTTP {status}: {body[:300]!r}")
    id, highest, began = orjson.loads(body)["id"], 0, time.monotonic()
    while (job := orjson.loads(http.request("GET", f"/api/v1/imports/{id}/")[1]))["state"] in {
        "pending",
        "running",
    }:
        highest = max(highest, sum(memory(instance.pid).values()))
        time.sleep(0.5)
    print(f"{job['state']} after {time.monotonic() - began:.0f} s: {job['progress']['messages']:,} messages")
    return highest


def _log(name: str, megabytes: int) -> bytes:
    choose = random.Random(name)
    words = [f"{choose.choice(['load', 'path', 'user'])}_{number}" for number in range(2_000)]
    messages = []
    for number in range(megabytes * 1_000_000 // _MESSAGE_BYTES):
        role = ("user", "assistant")[number % 2]
        text = " ".join(choose.choices(words, k=_MESSAGE_BYTES // 10))
        messages.append({"role": role, "content": f"{number} {text}"})
    return orjson.dumps({"id": name, "messages": messages})


def _text(sizes: dict[str, int]) -> str:
    parts = ", ".join(f"{part} {size / 1e6:.0f}" for part, size in sizes.items())
    return f"{sum(sizes.values()) / 1e6:.0f} MB ({parts})"


if __name__ == "__main__":
    main()
