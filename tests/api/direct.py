"""Requests on an event loop like that of the web server, next to requests through the endpoints."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sessions.api.direct import DirectRequests


def limit_requests(limit: int, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow each key this many requests, in a minute that does not end."""
    monkeypatch.setattr("sessions.api.ratelimit.time.time", lambda: 6_000_000.0)
    settings.CONTEXTAPP_RATE_LIMIT = limit
    settings.CONTEXTAPP_VALKEY_URL = ""


class Server:
    """An event loop in a thread that handles requests like the web server's."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.requests = DirectRequests()
        self.loop = asyncio.new_event_loop()
        self.pool = ThreadPoolExecutor(1)

    def push(
        self, body: Any, *, name: str = "s1", meanwhile: Callable[[], Any] = bool, **headers: str
    ) -> Any:
        """Return status, headers and JSON of the response, or None if the endpoint has to respond.

        `meanwhile` is called on the event loop when the push waits for something.
        """
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": f"/api/v1/sessions/{name}/turns/",
            "CONTENT_TYPE": "application/json",
            **headers,
        }
        return self._respond(environ, data, meanwhile)

    def fetch(self, *, name: str = "s1", **headers: str) -> Any:
        """Return status, headers and JSON (None if empty) of the response, or None like `push`."""
        path = f"/api/v1/sessions/{name}/prompt/"
        return self._respond({"REQUEST_METHOD": "GET", "PATH_INFO": path, **headers}, b"", bool)

    def close(self) -> None:
        self.pool.submit(self.requests.close).result()
        self.pool.shutdown()
        self.loop.close()

    def _respond(self, headers: dict[str, str], data: bytes, meanwhile: Callable[[], Any]) -> Any:
        environ = {"QUERY_STRING": "", "HTTP_AUTHORIZATION": f"Bearer {self.key}", **headers}

        async def respond() -> Any:
            work = asyncio.ensure_future(self.requests.respond(environ, data))
            await asyncio.sleep(0)
            meanwhile()
            return await work

        found = self.pool.submit(self.loop.run_until_complete, respond()).result(30)
        if found is None:
            return None
        status, named, content = found
        return status, dict(named), json.loads(content) if content else None
