"""The clock of the periodic tasks: `celery -A contextapp.clock beat`.

A Celery application that knows when to call what by name, and loads neither Django nor the tasks: it takes
half the memory of one that does.
"""

import os
from typing import Any

from celery import Celery
from celery.apps.beat import Beat
from celery.beat import Service

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")


class ReadyService(Service):  # type: ignore[misc]  # Celery is untyped
    """Has its scheduler before the handler of signals is installed, which asks for it: made by that handler,
    in the middle of its making, it fails. A signal that comes sooner ends a process with nothing to save."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.scheduler = self.get_scheduler()


class Clock(Beat):  # type: ignore[misc]
    Service = ReadyService


app = Celery("contextapp", fixups=[])
app.Beat = app.subclass_with_self(Clock)
app.config_from_object(os.environ["DJANGO_SETTINGS_MODULE"], namespace="CELERY")
