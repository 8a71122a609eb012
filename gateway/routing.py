"""Parse a request's path: the provider, the path at the provider, and the API key, if the URL contains one.

/gateway/anthropic/v1/messages
/gateway/k/ctx_…/openai/v1/chat/completions
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from gateway.providers import PROVIDERS, Provider

_ROOT = "/gateway/"

#: The body of the response to a path that the gateway does not serve.
NO_SUCH_URL = (
    b'{"error":{"type":"not_found_error","message":"No such URL. '
    b'The gateway serves /gateway/anthropic/ and /gateway/openai/. The API has a separate port."}}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route. `path` is the raw path and query at the provider. `endpoint` is "" if it is not recorded.

    With `lacks_version`, `path` is that of a recorded endpoint without `/v1`.
    """

    provider: Provider
    path: bytes
    endpoint: str
    lacks_version: bool = False
    key: str = ""


def route_of(method: str, raw_path: bytes, query: bytes) -> Route | None:
    """Return the route of a request, or None if the gateway does not serve its path."""
    text = raw_path.decode("latin-1")
    if not text.startswith(_ROOT):
        return None
    rest, key = text[len(_ROOT) :], ""
    if rest.startswith("k/"):
        key, _, rest = rest[2:].partition("/")
    name, _, path = rest.partition("/")
    provider = PROVIDERS.get(name)
    if provider is None:
        return None
    if path.startswith("v1/v1/"):  # the base URL ends with /v1, and the client adds it, too
        path = path.removeprefix("v1/")
    target = f"/{path}".encode("latin-1") + (b"?" + query if query else b"")
    endpoint, lacks_version = "", False
    if method == "POST":
        named = path.rstrip("/")
        lacks_version = f"v1/{named}" in provider.endpoints
        endpoint = provider.endpoints.get(f"v1/{named}" if lacks_version else named, "")
    return Route(
        provider=provider, path=target, endpoint=endpoint, lacks_version=lacks_version, key=unquote(key)
    )
