"""Measure the reconciliation of a long history, over HTTP.

    python -m bench.reconcile [--messages 10000] [--requests 15]

Starts an instance in a temporary folder, and sends a growing history until it has the given number of
messages. Then prints, for each kind of request, the medians in milliseconds of the time until the response is
received, of the time from the last byte of the request to the first byte of the response (the server's), and
of the CPU time of the web server and Postgres. The kinds are:

- unchanged: the same history again
- append: two more messages
- rewritten: two more messages, and the client serializes all messages differently, so all are compared
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.http import Http
from bench.instance import Instance, started
from bench.processes import part_of, processes

#: Number of messages to add with each request while the history is being built.
_STEP = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=15)
    parser.add_argument("--port", type=int, default=18_420)
    options = parser.parse_args()
    with started(options.port) as instance:
        client = Client(instance)
        client.grow(1)
        while len(client.messages) < options.messages:
            client.grow(_STEP)
            client.send()
        client.find_processes()
        print(f"{len(client.messages):,} messages, {len(client.body()) / 1e6:.1f} MB")
        for name, grows, indent in (
            ("unchanged", 0, [None]),
            ("append", 2, [None]),
            ("rewritten", 2, [1, 2]),
        ):
            for number in range(2):  # both web processes have seen the session
                client.send(indent=indent[number % len(indent)])
            figures = []
            for number in range(options.requests):
                client.grow(grows)
                figures.append(client.send(indent=indent[number % len(indent)]))
            wall, first, web, postgres = (median(values) for values in zip(*figures, strict=True))
            print(f"{name}: {wall:.1f} ms, server {first:.1f} ms,", end=" ")
            print(f"CPU of web server {web:.1f} ms, of Postgres {postgres:.1f} ms")


class Client:
    """An agent that sends its whole history with each call."""

    def __init__(self, instance: Instance) -> None:
        self.http, self.messages = Http(instance.port, instance.key), list[dict[str, Any]]()
        self.instance, self.web, self.postgres = instance, list[int](), list[int]()
        status, answer = self.http.request("POST", "/api/v1/sessions/", b'{"id": "long"}')
        assert status == 201, answer

    def find_processes(self) -> None:
        commands = processes(self.instance.pid).items()
        self.web = [pid for pid, command in commands if part_of(command) == "web"]
        self.postgres = [pid for pid, command in commands if command.startswith("postgres:")]

    def grow(self, count: int) -> None:
        for at in range(len(self.messages), len(self.messages) + count):
            self.messages.append(message(at))

    def body(self, indent: int | None = None) -> bytes:
        fields = {"system": "Fix bugs.", "messages": self.messages}
        return json.dumps(fields, indent=indent).encode()

    def send(self, indent: int | None = None) -> tuple[float, float, float, float]:
        """Reconcile the history. Return the times that `main` prints."""
        body = self.body(indent)
        web, postgres, at = _cpu_ms(self.web), _cpu_ms(self.postgres), time.perf_counter()
        status, answer = self.http.request("POST", "/api/v1/sessions/long/reconcile/", body)
        wall = (time.perf_counter() - at) * 1000
        assert status == 200, answer
        return wall, self.http.first_byte, _cpu_ms(self.web) - web, _cpu_ms(self.postgres) - postgres


def message(at: int) -> dict[str, Any]:
    """Return a user request, followed by alternating tool calls and results."""
    if at == 0:
        return {"role": "user", "content": "Fix the tests of the parser."}
    if at % 2:
        call = {"type": "tool_use", "id": f"toolu_{at}", "name": "Read", "input": {"path": f"src/m{at}.py"}}
        return {"role": "assistant", "content": [{"type": "text", "text": f"I read file {at}."}, call]}
    lines = "".join(f"{at}.{line} def handler_{line}(): return {at * line}\n" for line in range(4))
    result = {"type": "tool_result", "tool_use_id": f"toolu_{at - 1}", "content": lines}
    return {"role": "user", "content": [result]}


def _cpu_ms(pids: list[int]) -> float:
    return sum(_nanoseconds(pid) for pid in pids) / 1e6


def _nanoseconds(pid: int) -> int:
    """Return the CPU time of all threads of a process."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files)


if __name__ == "__main__":
    main()
