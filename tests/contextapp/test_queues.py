"""Urgent tasks overtake the others in the broker."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from celery import Celery

from contextapp.celery import app
from contextapp.queues import TURN
from sessions.services.dispatch import IMPORT_STEP, SEARCH_INDEX, task_dispatch

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


@pytest.mark.slow
@pytest.mark.usefixtures("servers")
def test_an_upload_does_not_wait_for_the_search_index_of_many_imported_sessions() -> None:
    """The indexing tasks do not expire while they wait, because no sweep would send them again."""
    with app.connection_for_read() as connection:
        _taken(connection, app, None)
        for _ in range(40):
            assert task_dispatch(SEARCH_INDEX, uuid4())
        task_dispatch(IMPORT_STEP, uuid4())
        waiting: list[Any] = []
        taken = _taken(connection, app, 41, messages=waiting)
    assert taken[0] == IMPORT_STEP
    assert taken.count(SEARCH_INDEX) == 40
    assert {each.headers["expires"] for each in waiting[1:]} == {None}


def _taken(
    connection: Any, celery: Celery, count: int | None, *, messages: list[Any] | None = None
) -> list[str]:
    """Take tasks one after the other, as a worker with one process does; all of them if `count` is None.

    Appends them to `messages`.
    """
    taken: list[str] = []

    def take(body: Any, message: Any) -> None:
        taken.append(message.headers["task"])
        if messages is not None:
            messages.append(message)
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
