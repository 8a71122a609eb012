"""The scheduler of the periodic tasks: `celery -A contextapp.scheduler beat`.

This Celery application sends tasks by name. It loads neither Django nor the tasks, which halves its memory.
"""

import os
from typing import Any

from celery import Celery
from celery.apps.beat import Beat
from celery.beat import Service

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")


class ReadyService(Service):  # type: ignore[misc]  # Celery is untyped
    """Create the schedule before the signal handler is installed.

    Celery's signal handler creates the schedule on first access. A signal that arrives during its creation
    would start a second creation, which fails.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.scheduler = self.get_scheduler()


class ReadyBeat(Beat):  # type: ignore[misc]
    Service = ReadyService


app = Celery("contextapp", fixups=[])
app.Beat = app.subclass_with_self(ReadyBeat)
app.config_from_object(os.environ["DJANGO_SETTINGS_MODULE"], namespace="CELERY")
