"""Settings of the log."""

from __future__ import annotations

import logging
from typing import Any


def logging_settings(level: str) -> dict[str, Any]:
    """Return Django's `LOGGING` with one line per record on the standard error stream."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "filters": {"own_setting": {"()": "django.utils.log.CallbackFilter", "callback": _with_own_setting}},
        "loggers": {
            # Responses such as 404 are not worth a log line.
            "django.request": {"level": "ERROR"},
            "django.security.DisallowedHost": {"filters": ["own_setting"]},
        },
    }


def _with_own_setting(record: logging.LogRecord) -> bool:
    """Name the environment variable of Django's setting, and leave out the traceback."""
    record.msg = record.getMessage().replace(" ALLOWED_HOSTS", " CONTEXTAPP_ALLOWED_HOSTS")
    record.args, record.exc_info, record.exc_text = None, None, None
    return True
