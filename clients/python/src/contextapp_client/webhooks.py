"""Verification of the requests that contextapp sends to the URLs of webhooks."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from typing import Any

from contextapp_client.errors import InvalidSignature

_SIGNATURE = re.compile(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})")


def verify_webhook(
    body: bytes, signature: str | None, secret: str, *, tolerance: float = 300
) -> dict[str, Any]:
    """Return the event of a request to a webhook's URL after its signature was verified.

    `body` is the unchanged body of the request, and `signature` its header `Contextapp-Signature`. `secret`
    was returned when the webhook was created. Raises `InvalidSignature` if the signature is missing or wrong,
    or more than `tolerance` seconds old. An event can arrive twice, with the same `Contextapp-Delivery`.
    """
    if not secret:
        raise ValueError("`secret` is empty. Is the environment variable of the secret set?")
    match = _SIGNATURE.fullmatch(signature or "")
    if match is None:
        raise InvalidSignature("the header `Contextapp-Signature` is missing or malformed")
    signed = match[1].encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected, match[2]):
        raise InvalidSignature("the request was not signed with this secret, or its body was changed")
    if abs(time.time() - int(match[1])) > tolerance:
        raise InvalidSignature(f"the signature is more than {tolerance:g} seconds old")
    event: dict[str, Any] = json.loads(body)
    return event
