"""Parse a request's path: the provider, the path at the provider, and the API key, if the URL contains one.

/gateway/anthropic/v1/messages
/gateway/k/ctx_…/openai/v1/chat/completions
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from gateway.providers import PROVIDERS, Provider
from gateway.providers.base import Endpoint

_ROOT = "/gateway/"

#: The body of the response to a path that the gateway does not serve.
NO_SUCH_URL = (
    b'{"error":{"type":"not_found_error","message":"No such URL. '
    b"The gateway serves /gateway/anthropic/, /gateway/openai/ and /gateway/gemini/. "
    b'The API has a separate port."}}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route. `path` is the raw path at the provider, and `query` the raw query.

    `endpoint` is what the provider serves there, and `key` the API key in the URL.
    """

    provider: Provider
    path: bytes
    query: bytes
    endpoint: Endpoint
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
    return Route(
        provider=provider,
        path=f"/{path}".encode("latin-1"),
        query=query,
        endpoint=provider.endpoint(path) if method == "POST" else Endpoint(),
        key=unquote(key),
    )
