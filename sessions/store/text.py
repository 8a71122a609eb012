"""Text that Postgres accepts."""

from __future__ import annotations


def storable(text: str) -> str:
    """Return the text with a replacement for NUL, which Postgres rejects in text and JSONB."""
    return text.replace("\0", "\ufffd")
