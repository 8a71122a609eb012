"""Send tasks to the workers.

The row in the database is authoritative; a lost message only delays the work until the next sweep. Tasks are
sent after the commit, often during an agent's request, so an unreachable broker must not delay the request:
the timeout is short, there is no retry, and after a failure no message is sent for a few seconds.
"""

from __future__ import annotations

import logging
import time
from typing import Any
from uuid import UUID

from celery import current_app
from kombu.exceptions import KombuError

log = logging.getLogger(__name__)

#: Names of tasks, so that senders need not import them.
COMPACTION_RUN = "sessions.tasks.compaction_run"
WEBHOOK_DELIVER = "sessions.tasks.webhook_deliver"
MEMORY_UPDATE = "sessions.tasks.memory_upkeep"
MEMORY_OBSERVE = "sessions.tasks.memory_observe"  # even if automatic updates are off in the project
SEARCH_INDEX = "sessions.tasks.search_index"
TOOLS_COUNT = "sessions.tasks.session_tools_count"
IMPORT_STEP = "sessions.tasks.import_step"
SAMPLE_LOAD = "sessions.tasks.sample_load"

#: Seconds to wait for the broker to accept a message, and seconds without messages after a failure.
TIMEOUT = 0.5
PAUSE = 5.0

#: Seconds after which a message is discarded; by then the sweep has sent another one. No sweep sends indexing
#: tasks, which may wait for longer after an import of many logs.
EXPIRES = 600

_paused_until = 0.0


def task_dispatch(task: str, row_id: UUID) -> bool:
    """Send a task for a row. Returns False if the broker did not accept it."""
    global _paused_until
    if time.monotonic() < _paused_until:
        return False
    try:
        _send(task, str(row_id))
    except (KombuError, OSError) as error:
        _paused_until = time.monotonic() + PAUSE
        log.warning("%s for %s is left to the next sweep: broker unreachable: %s", task, row_id, error)
        return False
    return True


def _send(task: str, *arguments: Any) -> None:
    options = {
        "socket_connect_timeout": TIMEOUT,
        "socket_timeout": TIMEOUT,
        "max_retries": 0,
    }
    with current_app.connection_for_write(connect_timeout=TIMEOUT, transport_options=options) as broker:
        current_app.signature(task, args=arguments).apply_async(
            connection=broker, retry=False, expires=None if task == SEARCH_INDEX else EXPIRES
        )
