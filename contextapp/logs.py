"""Settings of the log."""

from __future__ import annotations

import logging
import re
from typing import Any

#: The token of a link, 32 bytes in base64, and the secret of an API key.
_SECRETS = re.compile(r"(/(?:invitations|shared)/|\bctx_[0-9a-f]{8}_)[\w-]{43}", re.ASCII)


class LineFormatter(logging.Formatter):
    """Leave the secrets out that are parts of URLs: the paths of failed requests are logged."""

    def format(self, record: logging.LogRecord) -> str:
        return _SECRETS.sub(r"\1…", super().format(record))


def logging_settings(level: str) -> dict[str, Any]:
    """Return Django's `LOGGING` with one line per record on the standard error stream."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {"()": LineFormatter, "fmt": "%(asctime)s %(levelname)s %(name)s: %(message)s"}
        },
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
