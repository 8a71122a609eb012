"""Messages and turns of an agent for tests, and checks of its prompt."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpResponse

from compaction.capabilities import capabilities_of
from compaction.validation import validate
from tests.api.client import Api

TURNS = "sessions/s1/turns/"
PROMPT = "sessions/s1/prompt/"

#: A handle in a prompt.
HANDLE = re.compile(r"\bh_[a-z2-7]{10}\b")


def request(text: str = "Please read the files.") -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(id: str, name: str = "read_file", **arguments: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": id, "name": name, "input": arguments}
    return {"role": "assistant", "content": [block]}


def result(id: str, text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}


def answer(text: str = "Done.") -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def output(number: int, lines: int = 40) -> str:
    """Return a unique tool output with about twelve tokens per line."""
    return "\n".join(
        f"{number}.{line} def handler_{number}_{line}(request): return {line}" for line in range(lines)
    )


def whole_turn(number: int, *, lines: int = 40) -> list[dict[str, Any]]:
    """Return a request, a tool call, its output and the answer, without open calls."""
    name = f"toolu_{number:05}"
    return [
        request(f"Please read file {number}."),
        call(name, path=f"src/file_{number}.py"),
        result(name, output(number, lines)),
        answer(f"File {number} defines handlers."),
    ]


def openai_turn(number: int, *, lines: int = 40) -> list[dict[str, Any]]:
    """Return the same turn in OpenAI's format."""
    name = f"call_{number:05}"
    function = {"name": "read_file", "arguments": f'{{"path": "src/file_{number}.py"}}'}
    tool_calls = [{"id": name, "type": "function", "function": function}]
    return [
        request(f"Please read file {number}."),
        {"role": "assistant", "content": None, "tool_calls": tool_calls},
        {"role": "tool", "tool_call_id": name, "content": output(number, lines)},
        {"role": "assistant", "content": f"File {number} defines handlers."},
    ]


History = list[dict[str, Any]]


def history(turns: int) -> History:
    return [message for number in range(turns) for message in whole_turn(number, lines=3)]


def push(api: Api, messages: list[dict[str, Any]], session: str = "s1", **fields: Any) -> dict[str, Any]:
    """Push a turn, which must succeed, and return the response."""
    response = api.post(f"sessions/{session}/turns/", {"messages": messages, **fields})
    assert response.status_code == 201, response.content
    pushed: dict[str, Any] = response.json()
    return pushed


def reconcile(
    api: Api, messages: History, session: str = "s1", *, key: str | None = None, **fields: Any
) -> dict[str, Any]:
    """Send a whole history, which must be accepted, and return the response with a valid prompt."""
    headers = {} if key is None else {"idempotency_key": key}
    response = api.post(f"sessions/{session}/reconcile/", {"messages": messages, **fields}, **headers)
    assert response.status_code == 200, response.content
    assert_valid(response)
    found: dict[str, Any] = response.json()
    return found


def prompt(api: Api, query: str = "", session: str = "s1") -> dict[str, Any]:
    """Return the prompt, which must be valid for its provider."""
    response = api.get(f"sessions/{session}/prompt/{query}")
    assert response.status_code == 200, response.content
    assert_valid(response)
    served: dict[str, Any] = response.json()
    return served


def assert_valid(response: HttpResponse, model: str = "") -> None:
    served = response.json()
    found = validate(
        served["messages"],
        served["format"],
        system=served.get("system"),
        tools=served.get("tools"),
        capabilities=capabilities_of(model),
    )
    assert found == (), found[:3]
