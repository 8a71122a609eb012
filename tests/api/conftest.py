"""A client with a read-only key, a session, and an event loop like that of the web server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from accounts.models import Project
from accounts.services.api_keys import api_key_create
from tests.api.client import Api
from tests.api.direct import Server
from tests.api.talk import push, whole_turn
from tests.plugins.reused import reused


@reused
def reader_api(project: Project) -> Api:
    """Return a client with a read-only key."""
    return Api(api_key_create(project=project, name="reader", scopes=["read"])[1])


@reused
def session(api: Api) -> dict[str, Any]:
    """A session without turns, in Anthropic's format, with the external id `s1`."""
    made: dict[str, Any] = api.post("sessions/", {"id": "s1", "format": "anthropic", "agent": "tests"}).json()
    return made


@pytest.fixture
def server(api: Api, api_key: str, session: dict[str, Any]) -> Iterator[Server]:
    """An event loop that knows the key and the session, which has two turns."""
    push(api, whole_turn(0))
    push(api, whole_turn(1))
    server = Server(api_key)
    yield server
    server.close()
