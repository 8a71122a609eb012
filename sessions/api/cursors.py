"""Opaque cursors: where a list goes on. Not signed: a cursor holds no secret and grants nothing."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import orjson

from sessions.api.errors import InvalidRequest


def cursor_encode(*keys: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(keys)).decode().rstrip("=")


def cursor_decode(text: str, *types: type) -> list[Any]:
    """The keys of a cursor. Raises `InvalidRequest` where they are not of `types`."""
    try:
        keys = orjson.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, orjson.JSONDecodeError, UnicodeEncodeError, ValueError):
        keys = None
    if (
        not isinstance(keys, list)
        or len(keys) != len(types)
        or not all(type(key) is kind for key, kind in zip(keys, types, strict=True))
    ):
        raise InvalidRequest("invalid_cursor", "the cursor was not made by this call", param="cursor")
    return keys
