"""Encryption at rest, with keys derived from the server's secret key."""

from __future__ import annotations

import base64
from functools import lru_cache

from cryptography.fernet import Fernet
from django.conf import settings
from django.utils.crypto import salted_hmac


def cipher(purpose: str) -> Fernet:
    """Return a cipher for one purpose. If the secret key changes, existing values cannot be decrypted."""
    return _cipher(settings.SECRET_KEY, purpose)


@lru_cache(maxsize=8)
def _cipher(server_key: str, purpose: str) -> Fernet:
    key = salted_hmac("accounts.encryption", purpose, secret=server_key, algorithm="sha256").digest()
    return Fernet(base64.urlsafe_b64encode(key))
