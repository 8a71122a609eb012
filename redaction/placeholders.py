"""Placeholders that replace secrets, and findings about them."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass

#: Hex digits of the hash: enough to distinguish a project's secrets, too few to identify one.
HASH_DIGITS = 8

#: Matches a placeholder. Rules ignore placeholders, so redacting twice has no effect.
PLACEHOLDER = re.compile(r"\[redacted:[a-z0-9-]{1,40}:[0-9a-f]{8}\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The number of replaced secrets of one kind. The secrets are not stored."""

    kind: str
    count: int


def placeholder(kind: str, secret: str, key: bytes) -> str:
    digest = hmac.new(key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
    return f"[redacted:{kind}:{digest[:HASH_DIGITS]}]"
