"""The queues of Celery, the most urgent first. A free worker process takes the next task in this order."""

from __future__ import annotations

from kombu.entity import Queue

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
    ),
}

DEFAULT = "default"

QUEUES = [Queue(name, routing_key=name) for name in _TASKS]  # type: ignore[no-untyped-call]

ROUTES = {pattern: {"queue": name} for name, patterns in _TASKS.items() for pattern in patterns}

#: Celery asks Redis and Valkey for the queues in turn by default.
TRANSPORT_OPTIONS = {"queue_order_strategy": "priority"}
