"""The Celery application. Each Django app defines its tasks in its module `tasks`."""

import gc
import os
import signal
from contextlib import suppress
from threading import Timer

from billiard.util import get_pdeathsig
from celery import Celery
from celery.signals import task_postrun, worker_init, worker_process_init, worker_ready
from celery.worker import state

from contextapp.process_memory import freeze_loaded, return_freed

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")
# Django's system checks would load the pages and the API (30 MB), which tasks do not need.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("contextapp")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect  # type: ignore[untyped-decorator]
def warm_up(**_: object) -> None:
    """Import slow modules once, before the worker forks its processes, which then share the memory."""
    from sessions.api import metrics  # noqa: F401
    from sessions.selectors.summarizers import preload

    _leave_pool()
    preload()
    with suppress(OSError):  # only Linux has this signal
        get_pdeathsig()  # loads the parser with which each process sets its own
    gc.set_threshold(10_000)  # by default 700, which takes more time and frees little more
    freeze_loaded()


@worker_process_init.connect  # type: ignore[untyped-decorator]
def reserve_metrics(**_: object) -> None:
    from sessions.api.metrics import metrics_reserve

    metrics_reserve("counter")


@worker_ready.connect  # type: ignore[untyped-decorator]
def stop_in_time(**_: object) -> None:
    """On SIGTERM, wait until the running tasks have ended, but at most `WORKER_STOP_SECONDS`.

    Celery's warm shutdown waits for all tasks, its soft shutdown always waits for the whole time.
    """
    signal.signal(signal.SIGTERM, _stop)


def _stop(*_: object) -> None:
    from django.conf import settings

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    state.should_stop = os.EX_OK
    # A cold shutdown returns the tasks to the broker.
    patience = Timer(settings.WORKER_STOP_SECONDS, os.kill, (os.getpid(), signal.SIGQUIT))
    patience.daemon = True
    patience.start()


def _leave_pool() -> None:
    """Connect to the database without a pool: Celery would close it after each task, under other threads."""
    from django.conf import settings

    settings.DATABASES["default"]["OPTIONS"].pop("pool", None)


@task_postrun.connect  # type: ignore[untyped-decorator]
def return_memory(**_: object) -> None:
    """Return the memory of a task to the system: an import may take hundreds of megabytes."""
    return_freed()
