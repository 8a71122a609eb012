"""Requests to providers: raw bytes in both directions, without headers or defaults of the HTTP client."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

import httpcore2
import httpx2

from gateway.network import Attempt, Network, attempt

Headers = Sequence[tuple[bytes, bytes]]

#: Hop-by-hop headers (RFC 9110, 7.6.1), and headers that the HTTP client derives from the request.
_HOP_BY_HOP = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection",
        b"te", b"trailer", b"transfer-encoding", b"upgrade",
    }
)  # fmt: skip
_OURS = b"x-contextapp"
#: Browsers share cookies between the provider's responses and the dashboard, which may have the same host.
#: They would send its session cookie to the provider, whose URL a project can choose.
_BROWSER_STATE = frozenset({b"cookie", b"set-cookie", b"clear-site-data"})
#: A browser that opens a URL of the gateway must not run scripts of the provider as those of the dashboard.
_NO_SCRIPTS = (b"content-security-policy", b"sandbox")
_BETA = b"anthropic-beta"

#: Versions of the providers' APIs with which their base URL may end.
_VERSIONS = frozenset({b"/v1", b"/v1beta", b"/v1alpha"})

#: No read timeout: the agent has one, and its disconnect cancels the request.
_TIMEOUT = httpx2.Timeout(connect=10, write=60, pool=10, read=None)
#: Idle connections are closed before the providers close them, so that requests rarely use a closed one.
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=15)

#: Seconds within which a request fails on a connection that the provider has closed. If one fails later, the
#: model may have answered it, and the call would be billed twice.
CLOSED_WITHIN = 2.0

#: Maximum size of a response's headers in bytes. The default of 100 KB is less than some clients accept.
httpcore2.AsyncHTTP11Connection.MAX_INCOMPLETE_EVENT_SIZE = 2**20


class Client(httpx2.AsyncClient):
    """An HTTP client that sends requests without cookies, authentication, redirects or logging."""

    def __init__(self) -> None:
        super().__init__(verify=_trusted(), timeout=_TIMEOUT, limits=_LIMITS)
        # There is no public option for the connections of these transports, which may be those of proxies.
        for transport in (self._transport, *self._mounts.values()):
            if isinstance(transport, httpx2.AsyncHTTPTransport):
                transport._pool._network_backend = Network()

    async def respond(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return the response when its headers have arrived."""
        response = await self._transport_for_url(request.url).handle_async_request(request)
        response.request = request
        return response


@cache
def _trusted() -> ssl.SSLContext:
    """Return a shared context with the system's certificates, which take 40 ms to load."""
    return httpx2.create_ssl_context()


def request_headers(headers: Headers, *, without: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    """Return the request headers for the provider, in order."""
    own = {b"host", b"content-length"} | _BROWSER_STATE
    dropped = _HOP_BY_HOP | own | set(without) | _named_by_connection(headers)
    return [(name, value) for name, value in headers if _is_kept(name, dropped)]


def response_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return the response headers for the agent, in order."""
    dropped = _HOP_BY_HOP | _BROWSER_STATE | _named_by_connection(headers)
    return [*((name.lower(), value) for name, value in headers if _is_kept(name, dropped)), _NO_SCRIPTS]


def with_betas(headers: Headers, betas: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Return the request headers with these values of `anthropic-beta` added, if they are missing."""
    found = list(headers)
    given = [index for index, (name, _) in enumerate(headers) if name.lower() == _BETA]
    known = {each.strip() for index in given for each in headers[index][1].split(b",")}
    missing = [beta.encode() for beta in betas if beta.encode() not in known]
    if missing and given:
        name, value = headers[given[-1]]
        found[given[-1]] = name, b",".join([value, *missing])
    elif missing:
        found.append((_BETA, b",".join(missing)))
    return found


def _is_kept(name: bytes, dropped: frozenset[bytes] | set[bytes]) -> bool:
    return name.lower() not in dropped and not name.lower().startswith(_OURS)


def _named_by_connection(headers: Headers) -> set[bytes]:
    """Return the hop-by-hop headers that the header `Connection` lists."""
    values = [value for name, value in headers if name.lower() == b"connection"]
    return {part.strip().lower() for value in values for part in value.split(b",")}


@lru_cache(maxsize=1_000)
def url_of(address: str, path: bytes, lacks_version: bool) -> tuple[httpx2.URL, bytes]:
    """Return the URL of a path at a provider, and its path and query without normalization.

    A version that ends the address is not repeated. Adds `/v1` to a path that lacks it, unless the address
    has a path, which may contain a version. Agents use the same few URLs, and parsing takes time.
    """
    base = httpx2.URL(address)
    root = base.raw_path.rstrip(b"/")
    version = root[root.rfind(b"/") :]
    if version in _VERSIONS and path.startswith(version + b"/"):
        path = path.removeprefix(version)
    target = (b"/v1" if lacks_version and not root else root) + path
    return base.copy_with(raw_path=target), target


async def send(
    http: Client,
    method: str,
    url: httpx2.URL,
    headers: Headers,
    body: bytes,
    *,
    target: bytes | None = None,
    only_public: bool = False,
) -> httpx2.Response:
    """Send a request and return the response when its headers have arrived. Raises `httpx2.TransportError`.

    `target` is the path and query to send, if not those of the URL, which the HTTP client has normalized.
    With `only_public`, nothing is sent to a private address.

    If the provider had closed the connection, the request is sent once more on a new one.
    """
    for _ in range(2):
        started = time.monotonic()
        # As the connection names it: `url.host` would be decoded if it is internationalized.
        current = Attempt(public_host=url.raw_host.decode() if only_public else "")
        attempt.set(current)
        content = body if body or method in {"POST", "PUT", "PATCH"} else None
        request = httpx2.Request(method, url, headers=headers, content=content)
        request.extensions["timeout"] = _TIMEOUT.as_dict()
        if target is not None and target != url.raw_path:  # otherwise, HTTP proxies would get it too
            request.extensions["target"] = target
        try:
            return await http.respond(request)
        except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError) as error:
            if current.is_fresh or time.monotonic() - started > CLOSED_WITHIN:
                raise
            closed = error
    raise closed
