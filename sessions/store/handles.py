"""Handles of contents that a prompt no longer shows.

A handle is made from the session, the place in it and the server's key: nobody can guess one, it holds in
its session only, and the same content keeps its handle over several compactions. Short, since it
stands in prompts: 50 bits suffice behind an API key.
"""

from __future__ import annotations

import base64
from uuid import UUID

from django.utils.crypto import salted_hmac

_SALT = "sessions.handles"
_LENGTH = 10


def handle_make(session_id: UUID, position: int, part: int) -> str:
    digest = salted_hmac(_SALT, f"{session_id}:{position}:{part}", algorithm="sha256").digest()
    return "h_" + base64.b32encode(digest).decode()[:_LENGTH].lower()
