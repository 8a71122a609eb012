"""The schedule of periodic tasks."""

from __future__ import annotations

from contextapp.celery import app
from contextapp.schedule import beat_schedule


def test_every_scheduled_task_exists() -> None:
    app.loader.import_default_modules()
    names = {entry["task"] for entry in beat_schedule().values()}
    assert names <= app.tasks.keys()
