"""Urgent tasks overtake the others in the broker."""

from __future__ import annotations

from typing import Any

import pytest
from celery import Celery

from contextapp.celery import app
from contextapp.queues import TURN

WAITING = (
    "replay.tasks.replay_step",
    "sessions.tasks.rollups_fill",
    "sessions.tasks.webhook_deliver",
    "sessions.tasks.profiles_refresh",
    "sessions.tasks.memory_sweep",
    "sessions.tasks.compaction_run",
)


@pytest.mark.slow
@pytest.mark.usefixtures("servers")
def test_tasks_are_taken_by_urgency() -> None:
    with app.connection_for_read() as connection:
        _taken(connection, app, None)  # of other tests
        for name in (*WAITING, *WAITING):
            app.send_task(name, connection=connection)
        taken = _taken(connection, app, 2 * len(WAITING))
    urgent = [name for name in reversed(WAITING) for _ in range(2)]
    first = TURN - 1
    assert taken[:first] == urgent[:first]
    assert sorted(taken) == sorted(urgent)


@pytest.mark.slow
@pytest.mark.usefixtures("servers")
def test_a_task_that_is_not_urgent_does_not_wait_for_all_urgent_ones() -> None:
    with app.connection_for_read() as connection:
        _taken(connection, app, None)
        for name in ("sessions.tasks.import_step", *["sessions.tasks.compaction_run"] * 50):
            app.send_task(name, connection=connection)
        taken = _taken(connection, app, 51)
    assert "sessions.tasks.import_step" in taken[:TURN]


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
