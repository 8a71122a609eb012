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
    b'The gateway serves /gateway/anthropic/ and /gateway/openai/. The API has its own port."}}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route. `path` is the raw path and query at the provider. `endpoint` is "" if it is not recorded."""

    provider: Provider
    path: bytes
    endpoint: str
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
    target = f"/{path}".encode("latin-1") + (b"?" + query if query else b"")
    endpoint = provider.endpoints.get(path.rstrip("/"), "") if method == "POST" else ""
    return Route(provider=provider, path=target, endpoint=endpoint, key=unquote(key))
