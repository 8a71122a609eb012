"""Handles: short ids in a prompt that identify the original content.

A handle is derived from the session, the position in it and the server's key. It cannot be guessed, is valid
only in its session, and stays the same over several compactions. It is short because prompts contain it; 50
bits suffice, since using one requires an API key.
"""

from __future__ import annotations

import base64
from uuid import UUID

from django.utils.crypto import salted_hmac

_SALT = "sessions.handles"
_LENGTH = 10


def handle_make(session_id: UUID, position: int, part: int) -> str:
    """Return the handle of a part of the message at this position."""
    return handle_of(salted_hmac(_SALT, f"{session_id}:{position}:{part}", algorithm="sha256").digest())


def handle_of(digest: bytes) -> str:
    """Return the handle of the content that the digest identifies."""
    return "h_" + base64.b32encode(digest).decode()[:_LENGTH].lower()
