"""Sessions to summarize."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compaction.messages import Message
from tests.compaction.builders import assistant, call, parse, result, user

JSON = dict[str, Any]


def messages_of(items: list[JSON], *, first: int = 0) -> tuple[Message, ...]:
    """Return messages with positions from `first` on; each assistant message begins a turn."""
    turn, made = first, []
    for message in parse(items):
        turn += message.role == "assistant"
        made.append(replace(message, position=message.position + first, turn=turn))
    return tuple(made)


def pool_work() -> list[JSON]:
    """A bug is found and partly fixed."""
    return [
        user("Make the pool evict idle connections, and never touch tests/legacy.py"),
        call("c1", "Read", file_path="src/pool.py"),
        result("c1", "class PoolError(Exception): ...\ndef evict_idle(self, max_age): ...\nlimit = 4096\n"),
        assistant("The root cause is that evict_idle ignores max_age, so I use a monotonic clock."),
        call("c2", "Edit", file_path="src/pool.py", old_string="x", new_string="monotonic_now()"),
        result("c2", "updated"),
        call("c3", "Bash", command="pytest -q"),
        result("c3", "E  PoolError: timed out\nFAILED tests/test_pool.py::test_evicts\nexit code 1"),
    ]
