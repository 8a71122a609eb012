"""Send signed requests to the URLs of webhooks."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import re
import socket
import ssl
import time
from collections.abc import Mapping

from sessions.services.targets import Target

#: Seconds for one request, from the connection to the status line.
TIMEOUT = 10.0

#: Bytes within which the status line of a response ends.
_STATUS_BYTES = 8_192

#: The status of a final response; interim ones (1xx) precede it.
_STATUS = re.compile(rb"(?:^|\r\n\r\n)HTTP/1\.[01] ([2-9]\d\d)[^\r\n]*\r?\n")


def signature(secret: str, body: bytes, *, at: int) -> str:
    """Return `t=<seconds>,v1=<hex>`, an HMAC-SHA256 over `<seconds>.<body>`; the time prevents replays."""
    digest = hmac.new(secret.encode(), b"%d.%b" % (at, body), hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def post(target: Target, *, secret: str, body: bytes, headers: Mapping[str, str]) -> int:
    """Send a request and return the HTTP status.

    Redirects are not followed. Raises OSError, HTTPException; TimeoutError if all of it takes too long.
    """
    deadline = time.monotonic() + TIMEOUT
    path = (target.url.path or "/") + (f"?{target.url.query}" if target.url.query else "")
    with socket.create_connection((target.address, target.port), timeout=TIMEOUT) as plain:
        connection = http.client.HTTPConnection(target.url.hostname or "", target.port, timeout=TIMEOUT)
        plain.settimeout(_left(deadline))
        connection.sock = _wrap_tls(plain, target) if target.url.scheme == "https" else plain
        connection.sock.settimeout(_left(deadline))
        try:
            signed = {"Contextapp-Signature": signature(secret, body, at=int(time.time()))}
            connection.request("POST", path, body=body, headers={**headers, **signed})
            return _read_status(connection.sock, deadline)
        finally:
            connection.close()


def _read_status(connection: socket.socket, deadline: float) -> int:
    """Return the status of the response. http.client would wait as long as the receiver sends anything."""
    received = b""
    while not (found := _STATUS.search(received)):
        connection.settimeout(_left(deadline))
        more = connection.recv(4_096) if len(received) <= _STATUS_BYTES else b""
        if not more:
            raise http.client.HTTPException("not an HTTP response" if received else "no response")
        received += more
    return int(found[1])


def _left(deadline: float) -> float:
    """Return the seconds until the deadline. Raises TimeoutError after it."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError(f"no response within {TIMEOUT:g} s")
    return left


def _wrap_tls(plain: socket.socket, target: Target) -> ssl.SSLSocket:
    return ssl.create_default_context().wrap_socket(plain, server_hostname=target.url.hostname)
