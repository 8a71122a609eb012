"""The URLs of a session, from which its calls are built."""

from __future__ import annotations

from typing import Any

from contextapp_client.calls import Pages
from contextapp_client.steps import Response, Steps
from contextapp_client.transport import BaseTransport


class SessionEndpoint:
    """The URL of a session."""

    id: str
    transport: BaseTransport

    def _call(self, method: str, *path: str, **options: Any) -> Steps[Response]:
        return self.transport.call(method, "sessions", self.id, *path, **options)

    def _json(self, method: str, *path: str, **options: Any) -> Steps[Any]:
        return self.transport.json(method, "sessions", self.id, *path, **options)

    def _pages(self, *path: str, **query: object) -> Pages[Any]:
        return Pages(self.transport, ("sessions", self.id, *path), query)
