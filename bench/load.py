"""Turns with a realistic size distribution, and clients that push them."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.http import Http, timed_answer

ROOT = Path(__file__).resolve().parent.parent


@cache
def _text() -> str:
    """Return the files of this project, one after the other."""
    folders = [ROOT / name for name in ("compaction", "sessions", "docs")]
    files = sorted(file for folder in folders for file in folder.rglob("*") if file.suffix in {".py", ".md"})
    return "\n".join(file.read_text() for file in files)


class Load:
    """Turns with a heavy-tailed size distribution (median 2.3 KB), built from this project's files.

    Each turn is a tool call and its result. It reports the prompt size from the response to the previous
    push, as a provider would.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.text = _text()
        self.number = 0
        self.prompt_tokens = 20

    def hear(self, answer: bytes) -> None:
        self.prompt_tokens = json.loads(answer)["prompt"]["tokens"]

    def messages(self) -> list[dict[str, Any]]:
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
        return messages

    def turn(self) -> bytes:
        messages = self.messages()
        fresh = min(900, self.prompt_tokens)
        cached = self.prompt_tokens - fresh
        usage = {"input_tokens": fresh, "cache_read_input_tokens": cached, "output_tokens": 250}
        return json.dumps({"messages": messages, "usage": usage, "model": "claude-sonnet-4-5"}).encode()


def create_session(http: Http, name: str, budget: int | None) -> str:
    """Create a session, without compactions if `budget` is None. Return the path of its turns."""
    body: dict[str, Any] = {"id": name, "title": "Fix the parser", "agent": "coder", "tags": ["ci"]}
    body |= {"budget": {"input_tokens": budget}} if budget else {"policy": {"preset": "off"}}
    status, answer = http.request("POST", "/api/v1/sessions/", json.dumps(body).encode())
    if status != 201:
        raise SystemExit(f"HTTP {status}: {answer[:300]!r}")
    return f"/api/v1/sessions/{name}/turns/"


def push(http: Http, path: str, load: Load, body: bytes) -> float:
    """Return the milliseconds of one push to contextapp."""
    took, answer = timed_answer(partial(http.request, "POST", path, body), 201)
    load.hear(answer)
    return took


def push_concurrently(
    port: int, key: str, paths: Sequence[str], turns: int, *, is_ours: bool, seed: int = 0
) -> float:
    """Push `turns` turns to each path, from two processes with a thread per path. Return turns per second."""
    halves = [half for half in _halves(paths, seed) if half]
    context = get_context("fork")
    workers = [context.Process(target=_write_all, args=(port, key, half, turns, is_ours)) for half in halves]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise SystemExit("a writer failed")
    return turns * len(paths) / (time.perf_counter() - began)


def _halves(paths: Sequence[str], seed: int) -> list[list[tuple[str, Load]]]:
    """Return the paths and what to push to them, for each of two processes."""
    return [
        [(path, Load(seed + half * 1_000 + number)) for number, path in enumerate(paths[half::2])]
        for half in (0, 1)
    ]


def _write_all(port: int, key: str, sessions: Sequence[tuple[str, Load]], turns: int, is_ours: bool) -> None:
    def write(path: str, load: Load) -> None:
        http = Http(port, key)
        for _ in range(turns):
            if is_ours:
                push(http, path, load, load.turn())
            else:
                timed_answer(partial(http.request, "POST", path, load.turn()), 201)

    threads = [threading.Thread(target=write, args=each) for each in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def messages_pushed(paths: Sequence[str], turns: int, *, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the messages that `push_concurrently` pushes."""
    for half in _halves(paths, seed):
        for _, load in half:
            for _ in range(turns):
                yield from load.messages()
