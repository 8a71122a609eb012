"""Waking a worker up. The row is the intent: a message that is lost costs time until the next sweep, no more.

Called behind a commit, often within an agent's request, so a broker that is away must not hold it up: a
short time-out, no retry, and for a while no further try.
"""

from __future__ import annotations

import logging
import time
from typing import Any
from uuid import UUID

from celery import current_app
from kombu.exceptions import KombuError

log = logging.getLogger(__name__)

#: The tasks' names, so that who sends them need not import them.
RUN = "sessions.tasks.compaction_run"
DELIVER = "sessions.tasks.webhook_deliver"
UPKEEP = "sessions.tasks.memory_upkeep"
OBSERVE = "sessions.tasks.memory_observe"

#: Seconds that the broker has to take a message, and for which it is left alone when it did not.
PATIENCE = 0.5
PAUSE = 5.0

#: Seconds after which a message is of no use: the sweep has sent another one by then.
EXPIRES = 600

_silent_until = 0.0


def compaction_dispatch(compaction_id: UUID) -> bool:
    """Sends a compaction to the workers. False where the broker did not take it."""
    return task_dispatch(RUN, compaction_id)


def delivery_dispatch(delivery_id: UUID) -> bool:
    """Sends a delivery of a webhook to the workers. False where the broker did not take it."""
    return task_dispatch(DELIVER, delivery_id)


def upkeep_dispatch(session_id: UUID) -> bool:
    """Sends for the new turns of a session, for its working memory. False: the broker did not take it."""
    return task_dispatch(UPKEEP, session_id)


def observe_dispatch(session_id: UUID) -> bool:
    """The same because somebody asked, also where the project has upkeep off."""
    return task_dispatch(OBSERVE, session_id)


def task_dispatch(task: str, row_id: UUID) -> bool:
    """Send a task for a row. Returns False if the broker did not accept it."""
    global _silent_until
    if time.monotonic() < _silent_until:
        return False
    try:
        _send(task, str(row_id))
    except (KombuError, OSError) as error:
        _silent_until = time.monotonic() + PAUSE
        log.warning("%s of %s waits for the sweep, the broker does not answer: %s", task, row_id, error)
        return False
    return True


def _send(task: str, *arguments: Any) -> None:
    options = {
        "socket_connect_timeout": PATIENCE,
        "socket_timeout": PATIENCE,
        "max_retries": 0,
    }
    with current_app.connection_for_write(connect_timeout=PATIENCE, transport_options=options) as broker:
        current_app.signature(task, args=arguments).apply_async(
            connection=broker, retry=False, expires=EXPIRES
        )
