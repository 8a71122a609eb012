"""A session in OpenAI's format whose tools are seen at work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import Project
from accounts.services import api_key_create
from tests.api.client import Api
from tests.compaction.builders import call, result

MEMORY = "sessions/s1/memory/"


@pytest.fixture
def api(project: Project) -> Api:
    """A key that may do everything."""
    return Api(api_key_create(project=project, name="tests", scopes=["push", "read", "admin"])[1])


@pytest.fixture
def session(api: Api) -> dict[str, Any]:
    made: dict[str, Any] = api.post("sessions/", {"id": "s1", "format": "openai", "agent": "coder"}).json()
    return made


@pytest.fixture
def push(api: Api, session: dict[str, Any]) -> Callable[..., None]:
    """Pushes one turn of these messages."""

    def pushed(*messages: dict[str, Any]) -> None:
        response = api.post("sessions/s1/turns/", {"messages": list(messages)})
        assert response.status_code == 201, response.content

    return pushed


@pytest.fixture
def ran(push: Callable[..., None]) -> Callable[[str, str], None]:
    """Pushes a turn in which a command ran."""
    count = iter(range(10_000))

    def pushed(command: str, output: str) -> None:
        name = f"c{next(count)}"
        push(call(name, "bash", command=command), result(name, output))

    return pushed
