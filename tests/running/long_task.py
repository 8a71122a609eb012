"""A task that takes a while."""

from __future__ import annotations

import time
from pathlib import Path

from celery import shared_task


@shared_task(name="tests.long_task")
def long_task(started: str, ended: str, seconds: float) -> None:
    Path(started).touch()
    time.sleep(seconds)
    Path(ended).touch()
