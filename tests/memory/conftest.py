"""Sessions with tool calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import Project
from compaction.memory.origins import Author
from sessions.models import AgentSession
from sessions.services.memory.auto_updates import memory_update
from sessions.services.memory.revisions import Writer, memory_patch
from tests.api.client import Api
from tests.compaction.builders import call, result
from tests.pages.transcripts import make_session, message, turn
from tests.plugins.reused import reused

MEMORY = "sessions/s1/memory/"


@reused
def api(admin_api: Api) -> Api:
    """Return a client whose key has all scopes."""
    return admin_api


@reused
def session(api: Api) -> dict[str, Any]:
    made: dict[str, Any] = api.post("sessions/", {"id": "s1", "format": "openai", "agent": "coder"}).json()
    return made


@pytest.fixture
def push(api: Api, session: dict[str, Any]) -> Callable[..., None]:
    """Push one turn of these messages."""

    def pushed(*messages: dict[str, Any]) -> None:
        response = api.post("sessions/s1/turns/", {"messages": list(messages)})
        assert response.status_code == 201, response.content

    return pushed


@pytest.fixture
def ran(push: Callable[..., None]) -> Callable[[str, str], None]:
    """Push a turn in which a command ran."""
    count = iter(range(10_000))

    def pushed(command: str, output: str) -> None:
        name = f"c{next(count)}"
        push(call(name, "bash", command=command), result(name, output))

    return pushed


@reused
def marked(project: Project) -> AgentSession:
    """A session with an item that a tool's result contradicts."""
    run = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "python -m unittest"}}
    ran = {"type": "tool_result", "tool_use_id": "c", "content": "Ran 3 tests in 0.1s\n\nOK"}
    first = [message("user", "Mend it.", "u0"), message("assistant", [run], "a0")]
    second = [message("user", [ran], "u1"), message("assistant", "They pass.", "a1")]
    session: AgentSession = make_session(project, [turn(0, first), turn(1, second)])
    writer = Writer(author=Author.MODEL)
    memory_patch(session=session, changes={"decisions": ["tests run with pytest"]}, writer=writer)
    memory_update(session_id=session.pk, forced=True)
    return session
