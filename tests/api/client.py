"""A client of the API for tests, which sends and returns JSON."""

from __future__ import annotations

from copy import copy
from typing import Any

from django.http import HttpResponse
from django.test import Client

from sessions.store.bodies import json_bytes


class Api:
    """Calls with one key: `api.post("sessions/", {"format": "anthropic"})`."""

    def __init__(self, key: str) -> None:
        self._client = Client()
        self._authorization = f"Bearer {key}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Api:
        copied = copy(self)
        copied._client = Client()
        return copied

    def call(self, method: str, address: str, body: Any = None, **headers: str) -> HttpResponse:
        """`headers` with underscores: `if_match='"3"'`. A body of bytes is sent unchanged."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._client.generic(
            method,
            address if address.startswith("/") else f"/api/v1/{address}",
            data=b"" if body is None else body if isinstance(body, bytes) else json_bytes(body),
            content_type="application/json",
            headers={"authorization": self._authorization, **named},
        )

    def get(self, address: str, **headers: str) -> HttpResponse:
        return self.call("GET", address, **headers)

    def post(self, address: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.call("POST", address, body, **headers)

    def delete(self, address: str) -> HttpResponse:
        return self.call("DELETE", address)

    def patch(self, address: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.call("PATCH", address, body, **headers)


def code(response: HttpResponse) -> str:
    """Return the code of an error response."""
    return response.json()["error"]["code"]
