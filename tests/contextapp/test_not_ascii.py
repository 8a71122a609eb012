"""Requests with characters that URLs and headers may not contain, as curl sends them."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import pytest

from sessions.store.bodies import json_bytes
from tests.api.talk import request


class Curl(HTTPConnection):
    """Sends URLs unescaped."""

    def _encode_request(self, text: str) -> bytes:
        return text.encode()

    def _validate_path(self, url: str) -> None: ...

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> HTTPResponse:
        names = {name.replace("_", "-"): value.encode() for name, value in headers.items()}
        self.request(method, f"/api/v1/{path}", body and json_bytes(body), names)  # type: ignore[arg-type]
        return self.getresponse()


@pytest.fixture
def curl(served_url: str) -> Curl:
    return Curl(urlsplit(served_url).netloc, timeout=30)


def test_urls_may_be_unescaped_utf_8(curl: Curl, api_key: str) -> None:
    key = f"Bearer {api_key}"
    curl.call("POST", "sessions/", {"agent": "größe日本"}, authorization=key).read()
    response = curl.call("GET", "sessions/?agent=größe日本", authorization=key)
    assert response.status == 200
    assert "größe日本" in response.read().decode()


def test_idempotency_keys_must_be_ascii(curl: Curl, api_key: str) -> None:
    key = f"Bearer {api_key}"
    curl.call("POST", "sessions/", {"id": "s1", "format": "anthropic"}, authorization=key).read()
    turn = {"messages": [request()]}
    response = curl.call("POST", "sessions/s1/turns/", turn, authorization=key, idempotency_key="größe")
    assert response.status == 400
    assert "Idempotency-Key" in response.read().decode()
