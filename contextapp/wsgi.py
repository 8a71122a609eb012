"""The WSGI application."""

import os
import sys

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")

application = get_wsgi_application()


def warm_up() -> None:
    """Load the URLs, the connection pool and the redaction rules, which the first push needs."""
    _load_rest_framework()
    import psycopg_pool  # noqa: F401
    from django.urls import get_resolver

    from redaction import Redaction, redact_bytes
    from sessions.api import direct  # noqa: F401

    _ = get_resolver().url_patterns
    redact_bytes(b'{"content": "password = secret"}', redaction=Redaction(key=b"warm"))


def _load_rest_framework() -> None:
    """Load Django REST framework without the package `requests` (6 MB), which only its test client uses."""
    sys.modules["requests"] = None  # type: ignore[assignment]  # importing it fails
    import rest_framework.compat  # noqa: F401

    del sys.modules["requests"]
