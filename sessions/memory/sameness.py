"""Whether two texts say the same thing: by their words, whatever their case, blanks and ending."""

from __future__ import annotations

import hashlib
import unicodedata

_ENDINGS = " .,;:!?…"


def plain_words(text: str) -> str:
    """The text without what makes no difference: case, blanks, back-ticks, punctuation at its end."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("`", "")
    return " ".join(folded.split()).rstrip(_ENDINGS)


def digest_of(text: str) -> bytes:
    """Equal for texts that say the same (16 bytes)."""
    return hashlib.blake2b(plain_words(text).encode(), digest_size=16).digest()
