"""Decide whether two facts are the same: compare words, ignoring case, whitespace and final punctuation."""

from __future__ import annotations

import hashlib
import unicodedata
from uuid import UUID

from django.db import connection

_FINAL_PUNCTUATION = " .,;:!?…"


def normalized_text(text: str) -> str:
    """Normalize case, whitespace, backticks and final punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("`", "")
    return " ".join(folded.split()).rstrip(_FINAL_PUNCTUATION)


def text_digest(text: str) -> bytes:
    """Return 16 bytes that are equal for texts with the same normalized text."""
    return hashlib.blake2b(normalized_text(text).encode(), digest_size=16).digest()


def facts_lock(*, project_id: UUID, agent: str) -> None:
    """Lock the texts of an agent's facts until the transaction ends.

    Acquire it before locking rows, so that a check for duplicates stays true until the write.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{project_id} {agent}"])
