"""Urgent tasks overtake the others in the broker."""

from __future__ import annotations

from typing import Any

import pytest
from celery import Celery

from contextapp.celery import app

WAITING = (
    "replay.tasks.replay_step",
    "sessions.tasks.rollups_fill",
    "sessions.tasks.webhook_deliver",
    "sessions.tasks.profiles_refresh",
    "sessions.tasks.memory_sweep",
    "sessions.tasks.compaction_run",
)


@pytest.mark.usefixtures("servers")
def test_tasks_are_taken_by_urgency() -> None:
    with app.connection_for_read() as connection:
        _taken(connection, app, None)  # of other tests
        for name in (*WAITING, *WAITING):
            app.send_task(name, connection=connection)
        taken = _taken(connection, app, 2 * len(WAITING))
    urgent = [name for name in reversed(WAITING) for _ in range(2)]
    assert taken[:8] == urgent[:8]
    assert sorted(taken[8:]) == sorted(urgent[8:])


def _taken(connection: Any, celery: Celery, count: int | None) -> list[str]:
    """Take tasks one after the other, as a worker with one process does; all of them if `count` is None."""
    taken: list[str] = []

    def take(body: Any, message: Any) -> None:
        taken.append(message.headers["task"])
        message.ack()

    with connection.channel() as channel:
        consumer = celery.amqp.TaskConsumer(channel, callbacks=[take], accept=["json"])
        consumer.qos(prefetch_count=1)
        with consumer:
            while count is None or len(taken) < count:
                try:
                    connection.drain_events(timeout=2)
                except TimeoutError:
                    break
    return taken
