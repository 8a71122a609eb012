"""Settings of a worker that runs `tests.long_task` only."""

import os

from kombu import Queue

from tests.settings import *  # noqa: F403

CELERY_IMPORTS = ["tests.running.long_task"]
CELERY_BEAT_SCHEDULE: dict[str, object] = {}
CELERY_TASK_QUEUES = [Queue("stopping")]
WORKER_STOP_SECONDS = int(os.environ["CONTEXTAPP_TEST_STOP_SECONDS"])
