"""Both clients with the real server, and with one that fails on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.client.both import Connect
from tests.client.flaky import FlakyServer


@pytest.fixture(params=["sync", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Create clients: of the synchronous and of the asynchronous kind."""
    connect = Connect(request.param)
    yield connect
    connect.stop()


@pytest.fixture
def app(connect: Connect, served_url: str, api_key: str) -> Any:
    return connect(served_url, api_key)


@pytest.fixture
def session(app: Any) -> Any:
    """A session in Anthropic's format with a small budget and no turns."""
    return app.session(
        create={"model": "claude-sonnet-5-5", "agent": "tests", "budget": {"input_tokens": 4000}}
    )


@pytest.fixture
def flaky() -> Iterator[Callable[..., FlakyServer]]:
    """Create servers that return the given responses, one after the other."""
    servers: list[FlakyServer] = []

    def start(*answers: object) -> FlakyServer:
        servers.append(FlakyServer(answers))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
