"""The interface of a provider: its endpoints, credentials, sessions and responses."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from compaction.provider_engine import ProviderReport
from sessions.services.reconcile.values import Continued


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The parsed part of a response. `messages` is empty unless it is complete; `id` is the response's.

    `report` is what the provider reports about its own compaction of the request.

    A response has one message, or several if it consists of items.
    """

    messages: Sequence[Mapping[str, Any]] = ()
    id: str = ""
    model: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    report: ProviderReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The session that a call belongs to, as far as the client identifies it.

    `session` is None if the client names none. `agent` is a sub-agent of the session; `parent` is the session
    that started it as a sub-agent. `is_side` marks a side request outside the conversation, `is_compacted`
    the first one after the client compacted its context.
    """

    session: str | None = None
    agent: str = ""
    parent: str = ""
    client: str = ""
    is_side: bool = False
    is_compacted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A recorded endpoint; `name` is "" for a path that is not recorded.

    `model` is the model that the path names, "" if the body does. With `lacks_version`, the path lacks `/v1`.
    """

    name: str = ""
    model: str = ""
    lacks_version: bool = False


class Provider(ABC):
    """One provider. Its methods must accept any content from clients and providers."""

    name: ClassVar[str]
    label: ClassVar[str]
    #: The names of the recorded endpoints, by path with the version.
    endpoints: ClassVar[Mapping[str, str]] = {}
    #: What the parts of a stream contain from the model's first token on.
    content_mark: ClassVar[bytes] = b"delta"
    #: Endpoints whose requests are not part of the conversation. They are forwarded without edits.
    side_endpoints: ClassVar[frozenset[str]] = frozenset()
    #: Whether the provider's engine can compact a conversation that the provider stores.
    compacts_stored: ClassVar[bool] = False

    def endpoint(self, path: str) -> Endpoint:
        """Return the endpoint at a path, which does not begin with a slash."""
        path = path.rstrip("/")
        lacks_version = f"v1/{path}" in self.endpoints
        name = self.endpoints.get(f"v1/{path}" if lacks_version else path, "")
        return Endpoint(name=name, lacks_version=lacks_version)

    @abstractmethod
    def credential_headers(self, secret: str) -> list[tuple[bytes, bytes]]:
        """Return the request headers with a credential of the provider."""

    @abstractmethod
    def error(self, kind: str, message: str) -> bytes:
        """Return an error body in the provider's format."""

    @abstractmethod
    def identity(self, headers: Mapping[str, str], body: Mapping[str, Any]) -> Identity:
        """Return the session of a request."""

    def with_usage(self, endpoint: str, body: bytes) -> bytes:
        """Return the body, changed so that its stream reports usage. By default, returns it unchanged."""
        return body

    def compactable(self, endpoint: str, body: bytes) -> bytes:
        """Return the body in a form that compact mode can edit. By default, returns it unchanged."""
        return body

    def history(self, endpoint: str, body: bytes, fields: Mapping[str, Any]) -> bytes:
        """Return a JSON object with the request's `messages`, `system` and `tools`. Defaults to the body."""
        return body

    def history_field(self, endpoint: str) -> str:
        """Return the field of a request that contains its history."""
        return "messages"

    def format(self, endpoint: str) -> str:
        """Return the dialect of a session that begins with a call of the endpoint. Defaults to `name`."""
        return self.name

    def continued(self, endpoint: str, fields: Mapping[str, Any]) -> Continued | None:
        """Return what the request continues if the provider adds messages that it stores, else None."""
        return None

    def uses_stored(self, endpoint: str, fields: Mapping[str, Any]) -> bool:
        """Return whether the provider adds messages or items that it stores to the request."""
        return self.continued(endpoint, fields) is not None

    def resent(self, endpoint: str, fields: Mapping[str, Any], answer: Answer) -> Answer:
        """Return the part of an answer that the client will send again in its next request."""
        return answer

    def accepted(self, body: bytes, rejection: bytes) -> bytes | None:
        """Return what to send instead of a body that the provider rejected because of contextapp's edits.

        Returns None if `rejection`, the body of a response with the status 400, has another reason.
        """
        return None

    @abstractmethod
    def read_events(self, endpoint: str, events: Sequence[Mapping[str, Any]]) -> Answer:
        """Return the answer of a stream of events."""

    @abstractmethod
    def read_body(self, endpoint: str, body: Mapping[str, Any]) -> Answer:
        """Return the answer of a response that was not streamed."""


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def json_object(value: Any) -> Mapping[str, Any]:
    """Parse a JSON object from a string. Return an empty one if it is invalid."""
    try:
        return mapping(json.loads(value)) if isinstance(value, str) else {}
    except ValueError:
        return {}


#: Headers with which clients name their session, most specific first.
_SESSION_HEADERS = (
    "x-session-id",
    "x-opencode-session",
    "x-session-affinity",
    "x-grok-session-id",
)


def header_session(headers: Mapping[str, str], names: Sequence[str] = ()) -> str | None:
    """Return the session id in the headers, truncated to 150 characters."""
    for name in (*names, *_SESSION_HEADERS):
        if found := headers.get(name, "").strip():
            return found[:150]
    return None


def parent_session(headers: Mapping[str, str]) -> str:
    """Return the id of the session that started this one as a sub-agent, "" if there is none (OpenCode)."""
    return headers.get("x-parent-session-id", "").strip()[:150]


def is_opencode(headers: Mapping[str, str]) -> bool:
    """Return whether the client is OpenCode, which requests titles, without tools, in their session."""
    return client_name(headers) == "opencode"


def client_name(headers: Mapping[str, str]) -> str:
    """Return the name of the client: the product of its user agent, such as `claude-cli`."""
    return headers.get("user-agent", "").partition("/")[0].strip()[:60]
