"""The gateway as `contextapp.http_server` runs it."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.app import Gateway

#: The threads of compact mode share the interpreter with the streams. A shorter interval than the default of
#: 5 ms keeps the streams from waiting for them.
_SWITCH_SECONDS = 0.001


def preload() -> None:
    """Load the code that requests need. Leaves no thread."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")
    import django

    django.setup()

    import gateway.app  # noqa: F401


def create() -> Gateway:
    """Return the application, with the settings of the environment."""
    preload()

    from django.conf import settings

    from gateway.app import Gateway
    from gateway.callers import Callers
    from gateway.compact import Compactor
    from gateway.metrics import metrics_reserve
    from gateway.recording.process import RecordingProcess
    from gateway.recording.recorder import Recorder
    from gateway.recording.spool import Spool

    metrics_reserve()
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.freeze()
    process = RecordingProcess()
    spool = Spool(settings.CONTEXTAPP_GATEWAY_SPOOL)
    return Gateway(
        recorder=Recorder(spool, process.record, begin=process.start, end=process.stop),
        callers=Callers(),
        compactor=Compactor(),
        upstreams=settings.CONTEXTAPP_GATEWAY_UPSTREAMS,
        most_bytes=settings.CONTEXTAPP_GATEWAY_MAX_BODY_BYTES,
    )
