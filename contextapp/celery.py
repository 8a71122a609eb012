"""The Celery application. Each Django app defines its tasks in its module `tasks`."""

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
    """Import slow modules once, before the worker forks its processes, which then share the memory."""
    from sessions.selectors.summarizers import preload

    preload()
    gc.collect()
    gc.freeze()  # otherwise, garbage collection in the forked processes would copy the shared memory
