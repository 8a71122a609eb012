"""Whether two facts say the same thing: by their words, whatever their case, blanks and ending."""

from __future__ import annotations

import hashlib
import unicodedata
from uuid import UUID

from django.db import connection

_ENDINGS = " .,;:!?…"


def plain_words(text: str) -> str:
    """The text without what makes no difference: case, blanks, back-ticks, punctuation at its end."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("`", "")
    return " ".join(folded.split()).rstrip(_ENDINGS)


def digest_of(text: str) -> bytes:
    """Equal for texts that say the same (16 bytes)."""
    return hashlib.blake2b(plain_words(text).encode(), digest_size=16).digest()


def sameness_lock(*, project_id: UUID, agent: str) -> None:
    """Until the transaction ends nobody else changes what the facts of the agent say: take it before their
    rows, and what was looked up stays true."""
    key = hashlib.blake2b(project_id.bytes + agent.encode(), digest_size=8).digest()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [int.from_bytes(key, "big", signed=True)])
