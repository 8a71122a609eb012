"""The Celery application. Tasks live in the `tasks` module of their Django app."""

import gc
import os

from celery import Celery
from celery.signals import worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")

app = Celery("contextapp")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect  # type: ignore[untyped-decorator]
def warm_up(**_: object) -> None:
    """Loads what takes seconds, once and before the processes are forked, which then share the memory."""
    from sessions.selectors.summarizers import preload

    preload()
    gc.collect()
    gc.freeze()  # collections in the forked processes would touch, and so copy, what they share
