"""What the web server calls."""

import gc
import os
import threading

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")

application = get_wsgi_application()


def warm_up() -> None:
    """Loads what the first push would otherwise wait for: addresses, the vocabulary, the redaction rules."""
    from django.urls import get_resolver

    from compaction.adapters.tiktoken_counter import counter
    from redaction import Redaction, redact_bytes

    _ = get_resolver().url_patterns
    counter().count("warm")
    redact_bytes(b'{"content": "password = secret"}', redaction=Redaction(key=b"warm"))
    gc.collect()
    gc.freeze()  # what is loaded now stays: a collection in the middle of a request need not look through it


threading.Thread(target=warm_up, daemon=True).start()
