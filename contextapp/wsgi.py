"""The WSGI application."""

import os
from functools import cache

from django.core.wsgi import get_wsgi_application

from contextapp.process_memory import freeze_loaded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")

application = get_wsgi_application()


@cache
def warm_up() -> None:
    """Load the URLs, the tokenizer's vocabulary and the redaction rules, which the first push needs."""
    from django.urls import get_resolver

    from compaction.adapters.tokenizer import load_fastokens
    from redaction import Redaction, redact_bytes
    from sessions.api import direct  # noqa: F401

    _ = get_resolver().url_patterns
    load_fastokens()
    redact_bytes(b'{"content": "password = secret"}', redaction=Redaction(key=b"warm"))
    freeze_loaded()
