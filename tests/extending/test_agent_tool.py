"""A new agent tool is one file (`count_turns_tool.py`) and one line (an entry in `TOOLS`)."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.services.agent_tools import TOOLS
from tests.api.client import Api, code
from tests.api.talk import push, request
from tests.extending.count_turns_tool import TOOL

CALLS = "sessions/s1/tool_calls/"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLS, TOOL.name, TOOL)


@pytest.fixture(autouse=True)
def session(api: Api) -> None:
    api.post("sessions/", {"id": "s1"})
    push(api, [request()])
    push(api, [request()])


def test_it_is_listed_in_each_dialect(api: Api) -> None:
    assert api.get("/api/v1/tools/").json()["tools"][-1] == {
        "name": "count_turns",
        "description": "Count the turns of this session.",
        "input_schema": {"type": "object", "properties": {"first": {"type": "integer"}}},
    }
    assert api.get("/api/v1/tools/?format=openai").json()["tools"][-1]["function"]["name"] == "count_turns"


@pytest.mark.parametrize(
    ("arguments", "content", "is_error"),
    [
        ({}, "2 turns", False),
        ('{"first": 1}', "1 turns", False),
        ({"first": 3}, "this session has no turn 3", True),
        ({"first": "x"}, "`first` must be a whole number from 0", True),
    ],
)
def test_it_can_be_called(api: Api, arguments: Any, content: str, is_error: bool) -> None:
    response = api.post(CALLS, {"name": "count_turns", "arguments": arguments})
    assert response.json() == {"content": content, "is_error": is_error}


def test_without_the_line_it_is_unknown(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(TOOLS, TOOL.name)
    response = api.post(CALLS, {"name": "count_turns"})
    assert (response.status_code, code(response)) == (400, "unknown_tool")
