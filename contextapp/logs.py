"""Settings of the log."""

from __future__ import annotations

from typing import Any


def logging_settings(level: str) -> dict[str, Any]:
    """Return Django's `LOGGING` with one line per record on the standard error stream."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        # Responses such as 404 are not worth a log line.
        "loggers": {"django.request": {"level": "ERROR"}},
    }
