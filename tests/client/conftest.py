"""The client with the real server, and with one that fails on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from contextapp_client import ContextApp, Session

from tests.client.flaky import FlakyServer


@pytest.fixture
def app(served_url: str, api_key: str) -> Iterator[ContextApp]:
    with ContextApp(served_url, api_key) as app:
        yield app


@pytest.fixture
def session(app: ContextApp) -> Session:
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
