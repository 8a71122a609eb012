"""Measure push and fetch over HTTP, compared with a minimal DRF view that only inserts.

    python -m bench.api                  # everything, about five minutes
    python -m bench.api --turns 1000     # shorter: up to turn 1,000

Starts a separate instance in a temporary folder with the embedded, durable Postgres. Compare the ratios to
the bare view, which is measured alternately on the same machine: once only inserting, once also counting
tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg

from bench.bare_table import CREATE
from bench.http import Http, quantiles, timed, timed_answer
from contextapp.embedded.home import database_url

ROOT = Path(__file__).resolve().parent.parent
MARKS = (100, 1_000, 10_000)
WINDOW = 100  # turns measured around each mark
BUDGET = 30_000


def _texts(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.suffix in {".py", ".md"})


class Load:
    """Turns with a realistic, heavy-tailed size distribution, built from the text of this project's files.

    Each turn is a tool call and its result. It reports the prompt size from the response to the previous
    push, as a provider would.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        files = sorted(
            file for folder in ("compaction", "sessions", "docs") for file in _texts(ROOT / folder)
        )
        self.text = "\n".join(file.read_text() for file in files)
        self.number = 0
        self.prompt_tokens = 20

    def hear(self, answer: bytes) -> None:
        self.prompt_tokens = json.loads(answer)["prompt"]["tokens"]

    def turn(self) -> bytes:
        self.number += 1
        size = min(84_000, int(self.random.lognormvariate(7.65, 1.2)) + 150)
        start = self.random.randrange(max(1, len(self.text) - size))
        call = f"toolu_{self.random.getrandbits(80):020x}"
        path = f"src/module_{self.random.randrange(60)}.py"
        messages: list[dict[str, Any]] = [
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me look at the next file that this change touches."},
                    {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": path}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": call, "content": self.text[start : start + size]}
                ],
            },
        ]
        if self.number == 1:
            messages.insert(0, {"role": "user", "content": "Make the tests of the parser pass."})
        fresh = min(900, self.prompt_tokens)
        cached = self.prompt_tokens - fresh
        usage = {"input_tokens": fresh, "cache_read_input_tokens": cached, "output_tokens": 250}
        return json.dumps({"messages": messages, "usage": usage, "model": "claude-sonnet-4-5"}).encode()


def latency(port: int, bare_port: int, key: str, turns: int) -> list[dict[str, Any]]:
    """Measure one session turn by turn. Around each mark, each push is paired with one to the bare view."""
    ours, load = Http(port, key), Load(1)
    status, _ = ours.request(
        "POST", "/api/v1/sessions/", json.dumps({"id": "long", "budget": {"input_tokens": BUDGET}}).encode()
    )
    assert status == 201, status
    rows = []
    for mark in (m for m in MARKS if m <= turns):
        while load.number < mark - WINDOW:
            _push(ours, "/api/v1/sessions/long/turns/", load, load.turn())
        push, floor, counted, fetch = [], [], [], []
        bare = Http(bare_port, key)  # the server closes idle connections
        for _ in range(WINDOW):
            body = load.turn()
            push.append(_push(ours, "/api/v1/sessions/long/turns/", load, body))
            floor.append(timed(partial(bare.request, "POST", "/long/", body), 201))
            counted.append(timed(partial(bare.request, "POST", "/counted/long/", body), 201))
            fetch.append(timed(lambda: ours.request("GET", "/api/v1/sessions/long/prompt/"), 200))
        rows.append(
            {
                "turn": mark,
                "push": quantiles(push),
                "bare": quantiles(floor),
                "counted": quantiles(counted),
                "fetch": quantiles(fetch),
                "push_to_bare": round(statistics.median(push) / statistics.median(floor), 2),
                "push_to_counted": round(statistics.median(push) / statistics.median(counted), 2),
            }
        )
    return rows


def _push(http: Http, path: str, load: Load, body: bytes) -> float:
    """Return the milliseconds of one push to contextapp."""
    took, answer = timed_answer(partial(http.request, "POST", path, body), 201)
    load.hear(answer)
    return took


def hammer(port: int, key: str, paths: list[str], turns: int, seed: int, is_ours: bool) -> None:
    """Run the writers of one client process, one thread per session."""

    def write(path: str, number: int) -> None:
        http, load = Http(port, key), Load(seed * 1000 + number)
        for _ in range(turns):
            if is_ours:
                _push(http, path, load, load.turn())
            else:
                timed(partial(http.request, "POST", path, load.turn()), 201)

    threads = [threading.Thread(target=write, args=(path, n)) for n, path in enumerate(paths)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def throughput(port: int, bare_port: int, key: str, sessions: int, turns: int) -> dict[str, Any]:
    """Measure turns per second with this many concurrent sessions, alternating with the bare view."""
    http = Http(port, key)
    rates: dict[str, list[float]] = {"ours": [], "bare": [], "counted": []}
    for repeat in range(3):
        names = [f"load-{sessions}-{repeat}-{n}" for n in range(sessions)]
        for name in names:
            body = json.dumps({"id": name, "budget": {"input_tokens": 200_000}}).encode()
            assert http.request("POST", "/api/v1/sessions/", body)[0] == 201
        for who, at, paths in (
            ("ours", port, [f"/api/v1/sessions/{name}/turns/" for name in names]),
            ("bare", bare_port, [f"/{name}/" for name in names]),
            ("counted", bare_port, [f"/counted/{name}/" for name in names]),
        ):
            rates[who].append(_rate(at, key, paths, turns // sessions, is_ours=who == "ours"))
    medians = {who: round(statistics.median(found)) for who, found in rates.items()}
    ratios = {f"to_{who}": round(medians["ours"] / medians[who], 2) for who in ("bare", "counted")}
    return {"sessions": sessions, **medians, **ratios}


def _rate(port: int, key: str, paths: list[str], turns: int, *, is_ours: bool) -> float:
    halves = [half for half in (paths[::2], paths[1::2]) if half]
    context = get_context("fork")
    workers = [
        context.Process(target=hammer, args=(port, key, half, turns, seed, is_ours))
        for seed, half in enumerate(halves)
    ]
    started = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise SystemExit("a writer failed")
    return turns * len(paths) / (time.perf_counter() - started)


def stored(database: str, pushed: int) -> dict[str, Any]:
    """Return the bytes in Postgres per pushed byte, including indexes and TOAST."""
    with psycopg.connect(database, autocommit=True) as connection:
        names = ("message", "turn", "blob", "edit", "compaction", "recap", "promptsnapshot", "agentsession")
        sizes = {
            name: connection.execute(
                "SELECT pg_total_relation_size(%s::regclass)", [f"agent_sessions_{name}"]
            ).fetchone()[0]
            for name in names
        }
        bare = connection.execute("SELECT pg_total_relation_size('bench_bare')").fetchone()[0]
    return {"ours": sizes, "ratio": round(sum(sizes.values()) / pushed, 3), "bare_bytes": bare}


@contextmanager
def instance(port: int, bare_port: int) -> Iterator[tuple[str, str]]:
    """Start contextapp and the bare view with the same number of workers; yield API key and database."""
    home = Path(tempfile.mkdtemp(prefix="ctxbench"))
    environment = {**os.environ, "CONTEXTAPP_HOME": str(home), "CONTEXTAPP_PORT": str(port)}
    environment.pop("DATABASE_URL", None)
    environment.pop("CELERY_BROKER_URL", None)
    product = subprocess.Popen([sys.executable, "-m", "contextapp"], cwd=ROOT, env=environment)
    bare = None
    try:
        _wait(port)
        database = database_url(home)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(CREATE)
        command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--port", str(bare_port)]
        command += ["--workers", "2", "--blocking-threads", "4", "--no-ws", "--log-level", "warning"]
        bare = subprocess.Popen(
            [*command, "bench.bare:application"], cwd=ROOT, env={**environment, "DATABASE_URL": database}
        )
        _wait(bare_port)
        yield (home / "api-key").read_text().strip(), database
    finally:
        for process in (bare, product):
            if process is not None:
                process.terminate()
                process.wait(30)
        shutil.rmtree(home, ignore_errors=True)


def _wait(port: int) -> None:
    for _ in range(600):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
                probe.sendall(b"GET /none HTTP/1.0\r\nHost: localhost\r\n\r\n")
                if probe.recv(4) == b"HTTP":
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"no response on port {port}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=10_000, help="length of the long session")
    parser.add_argument("--load", type=int, default=1_600, help="number of turns of each throughput run")
    parser.add_argument("--port", type=int, default=18_400)
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args()
    with instance(options.port, options.port + 1) as (key, database):
        figures: dict[str, Any] = {"latency_ms": latency(options.port, options.port + 1, key, options.turns)}
        pushed = sum(len(load.turn()) for load in [Load(1)] for _ in range(options.turns))
        figures["bytes"] = stored(database, pushed)
        figures["turns_per_second"] = [
            throughput(options.port, options.port + 1, key, sessions, options.load) for sessions in (1, 4, 16)
        ]
    report(figures)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


def report(figures: dict[str, Any]) -> None:
    print("Milliseconds (p50/p95/p99) and ratios of p50. bare: only inserts; counted: also counts tokens")
    for row in figures["latency_ms"]:
        cells = "  ".join(
            f"{name} " + "/".join(f"{value:.2f}" for value in row[name].values())
            for name in ("push", "bare", "counted", "fetch")
        )
        ratios = f"push to bare {row['push_to_bare']:.2f}, to counted {row['push_to_counted']:.2f}"
        print(f"turn {row['turn']:>6}  {cells}  {ratios}")
    for row in figures["turns_per_second"]:
        cells = ", ".join(f"{who} {row[who]}" for who in ("ours", "bare", "counted"))
        ratios = f"{row['to_bare']} of bare, {row['to_counted']} of counted"
        print(f"{row['sessions']:>3} sessions, turns per second: {cells}; {ratios}")
    print("bytes stored per byte pushed:", figures["bytes"]["ratio"], figures["bytes"]["ours"])


if __name__ == "__main__":
    main()
