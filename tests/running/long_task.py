"""A task that takes longer than a worker may take to stop."""

from __future__ import annotations

import time
from pathlib import Path

from celery import shared_task


@shared_task(name="tests.long_task")
def long_task(started: str) -> None:
    Path(started).touch()
    time.sleep(600)
