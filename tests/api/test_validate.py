"""`prompts/validate/` over the API."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.dialects import DIALECTS
from tests.api.client import Api, code

CHECK = "prompts/validate/"
CALL = {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def test_a_valid_prompt_is_valid(api: Api) -> None:
    messages = [user(text("list")), assistant(CALL), user(RESULT)]
    shown = api.post(CHECK, {"format": "anthropic", "messages": messages}).json()
    assert shown == {"valid": True, "violations": []}


def test_a_call_without_result_is_reported_with_rule_and_position(api: Api) -> None:
    messages = [user(text("list")), assistant(CALL), user(text("and?"))]
    shown = api.post(CHECK, {"format": "anthropic", "messages": messages}).json()
    assert shown["valid"] is False
    assert [(found["rule"], found["position"]) for found in shown["violations"]] == [("A1", 1)]
    assert "t1" in shown["violations"][0]["message"]


def test_openai_messages_are_checked_by_openai_rules(api: Api) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "x", "content": "y"}]
    shown = api.post(CHECK, {"format": "openai", "messages": messages}).json()
    assert [found["rule"] for found in shown["violations"]] == ["C2"]


@pytest.mark.parametrize("results", [1, 2])
def test_parallel_calls_with_one_id_are_reported(api: Api, results: int) -> None:
    messages = [user(text("list")), assistant(CALL, CALL), user(*[RESULT] * results)]
    shown = api.post(CHECK, {"format": "anthropic", "messages": messages}).json()
    assert {found["rule"] for found in shown["violations"]} == {"A3"}
    call = {"id": "t1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    answered = {"role": "tool", "tool_call_id": "t1", "content": "a.txt"}
    asked = [{"role": "user", "content": "list"}, {"role": "assistant", "tool_calls": [call, call]}]
    shown = api.post(CHECK, {"format": "openai", "messages": [*asked, *[answered] * results]}).json()
    assert {found["rule"] for found in shown["violations"]} == {"C2"}


def test_a_trailing_assistant_message_depends_on_the_model(api: Api) -> None:
    body = {"format": "anthropic", "messages": [user(text("hi")), assistant(text("I"))]}
    assert api.post(CHECK, body | {"model": "claude-opus-4-5"}).json()["valid"]
    refused = api.post(CHECK, body | {"model": "claude-opus-4-6"}).json()
    assert [found["rule"] for found in refused["violations"]] == ["A7"]


@pytest.mark.parametrize("format", DIALECTS)
@pytest.mark.parametrize(
    "message",
    [
        {},
        {"role": 1},
        {"role": "user", "content": [1, None, {"type": 2}]},
        {"role": [], "content": [{"type": {}}]},
        {"role": "assistant", "content": {"a": []}, "tool_calls": [1, {"function": 3}]},
        {"role": "tool", "tool_call_id": []},
    ],
)
def test_invalid_messages_never_cause_a_server_error(api: Api, format: str, message: Any) -> None:
    response = api.post(CHECK, {"format": format, "messages": [message]})
    assert response.status_code == 200
    assert isinstance(response.json()["valid"], bool)


@pytest.mark.parametrize(
    ("body", "expected", "param"),
    [
        ({"messages": []}, "missing_field", "format"),
        ({"format": "cohere", "messages": []}, "invalid_field", "format"),
        ({"format": "openai"}, "missing_field", "messages"),
        ({"format": "openai", "messages": "hi"}, "invalid_field", "messages"),
        ({"format": "openai", "messages": [], "tool": []}, "unknown_field", "tool"),
    ],
)
def test_an_invalid_request_is_explained(api: Api, body: Any, expected: str, param: str) -> None:
    response = api.post(CHECK, body)
    assert response.status_code == 400
    assert (code(response), response.json()["error"]["param"]) == (expected, param)


def test_more_messages_than_the_limit_are_rejected(api: Api, settings: Any) -> None:
    settings.CONTEXTAPP_MAX_MESSAGES = 1
    response = api.post(CHECK, {"format": "openai", "messages": [{"role": "user", "content": "a"}] * 11})
    assert (response.status_code, code(response)) == (413, "too_many_messages")
