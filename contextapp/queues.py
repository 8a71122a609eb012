"""The queues of Celery, the most urgent first. A free worker process takes the next task in this order.

Of every `TURN` tasks, one may come from any queue. Otherwise, imports and replays would never run while more
urgent tasks arrive faster than the workers run them.

An import of many logs sends an indexing task for each session. These tasks are in the last queue, so that
they do not delay any others.
"""

from __future__ import annotations

from typing import Any

from kombu.entity import Queue
from kombu.utils.scheduling import priority_cycle

TURN = 5

#: Task name patterns by queue. Tasks that match none are in the default queue.
_TASKS: dict[str, tuple[str, ...]] = {
    "compactions": ("sessions.tasks.compaction*",),
    "memory": ("sessions.tasks.memory_*", "sessions.tasks.references_check"),
    "default": (),
    "deliveries": ("sessions.tasks.webhook*",),
    "background": (
        "replay.*",
        "sessions.tasks.cost_budgets_check",
        "sessions.tasks.derive_everywhere",
        "sessions.tasks.import*",
        "sessions.tasks.retention_run",
        "sessions.tasks.rollups_fill",
        "sessions.tasks.session_tools_count",
    ),
    "search": ("sessions.tasks.search_index",),
}

DEFAULT = "default"

QUEUES = [Queue(name, routing_key=name) for name in _TASKS]  # type: ignore[no-untyped-call]

ROUTES = {pattern: {"queue": name} for name, patterns in _TASKS.items() for pattern in patterns}


class UrgentFirst(priority_cycle):
    """The order in which Redis or Valkey is asked for the next task. `items` are the names of the queues."""

    def __init__(self, it: Any = None) -> None:
        super().__init__(it)  # type: ignore[no-untyped-call]
        self._taken = 0

    def consume(self, n: int) -> list[str]:
        """Return the queues: the most urgent first.

        For the last task of a turn, the least urgent is first, then the one before it, and so on.
        """
        turn, place = divmod(self._taken, TURN)
        if place < TURN - 1 or not n:
            return self.items[:n]
        first, reverse = turn % n, self.items[:n][::-1]
        return [*reverse[first:], *reverse[:first]]

    def rotate(self, last_used: str) -> None:
        """Count a task that was taken."""
        self._taken += 1


#: Celery asks Redis and Valkey for the queues in turn by default.
TRANSPORT_OPTIONS = {"queue_order_strategy": f"{__name__}:{UrgentFirst.__name__}"}
