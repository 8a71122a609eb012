"""Who may read the metrics of the server and of the gateway."""

from __future__ import annotations

import hmac
from ipaddress import ip_address

from django.conf import settings


def may_read_metrics(*, authorization: bytes, client: str, is_forwarded: bool) -> bool:
    """Return whether a request may read the metrics. Requires the token, or a local client if none is set.

    `authorization` is its header, `client` the address of its peer. Behind a proxy, every client seems local.
    """
    if token := settings.CONTEXTAPP_METRICS_TOKEN:
        return hmac.compare_digest(authorization, f"Bearer {token}".encode())
    try:
        address = ip_address(client)
        return not is_forwarded and (getattr(address, "ipv4_mapped", None) or address).is_loopback
    except ValueError:
        return False
