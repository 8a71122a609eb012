"""Who may read the metrics of the server and of the gateway."""

from __future__ import annotations

import hmac
from ipaddress import ip_address

from django.conf import settings
from django.http.request import split_domain_port, validate_host

#: The response to other requests.
REFUSAL = (
    "Set CONTEXTAPP_METRICS_TOKEN and send it as a bearer token. Without a token, only clients on the same "
    "machine can read the metrics, at one of CONTEXTAPP_ALLOWED_HOSTS."
)


def may_read_metrics(*, authorization: bytes, client: str, host: str, is_forwarded: bool) -> bool:
    """Return whether a request may read the metrics. Requires the token, or a local client if none is set.

    `authorization` and `host` are its headers, `client` the address of its peer. Behind a proxy, every client
    seems local. A page of another site, whose name resolves to this machine, must not read them either.
    """
    if token := settings.CONTEXTAPP_METRICS_TOKEN:
        return hmac.compare_digest(authorization, f"Bearer {token}".encode())
    if not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return False
    try:
        address = ip_address(client)
        return not is_forwarded and (getattr(address, "ipv4_mapped", None) or address).is_loopback
    except ValueError:
        return False
