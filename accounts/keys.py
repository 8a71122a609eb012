"""The format of API keys: `ctx_<prefix>_<secret>`. The prefix identifies the key."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

MARK = "ctx"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    text: str
    prefix: str
    hash: bytes


def key_generate() -> NewKey:
    prefix, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    return NewKey(text=f"{MARK}_{prefix}_{secret}", prefix=prefix, hash=secret_hash(secret))


def secret_hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def key_split(text: str) -> tuple[str, str] | None:
    """Return the prefix and the secret of an API key, or None if the text is malformed."""
    mark, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    return (prefix, secret) if mark == MARK and prefix and secret else None


def secret_matches(secret: str, expected: bytes) -> bool:
    """Return whether the secret has the expected hash. Takes constant time."""
    return hmac.compare_digest(secret_hash(secret), expected)
