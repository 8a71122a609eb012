"""`/healthz` and `/metrics` of the gateway."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.http import Message
from gateway.status import serve_status
from tests.asynchronous import run


def status(path: str, *, client: str = "127.0.0.1", **headers: str) -> int:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    headers = {"host": "localhost:8001"} | headers
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    run(serve_status({"path": path, "headers": named, "client": (client, 5_000)}, send))
    found: int = sent[0]["status"]
    return found


def test_the_gateways_health_check_needs_no_key() -> None:
    assert status("/healthz", client="10.0.0.7") == 200


@pytest.mark.parametrize(
    ("client", "headers", "expected"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("10.0.0.7", {}, 403),
        ("127.0.0.1", {"x_forwarded_for": "10.0.0.7"}, 403),
        ("127.0.0.1", {"forwarded": "for=10.0.0.7"}, 403),
        ("127.0.0.1", {"host": "rebound.example:8001"}, 403),
    ],
)
def test_without_a_token_only_local_clients_get_the_metrics(
    client: str, headers: dict[str, str], expected: int
) -> None:
    assert status("/metrics", client=client, **headers) == expected


def test_with_a_token_it_is_required(settings: Any) -> None:
    settings.CONTEXTAPP_METRICS_TOKEN = "letmein"
    assert status("/metrics") == 403
    assert status("/metrics", client="10.0.0.7", authorization="Bearer letmein") == 200
