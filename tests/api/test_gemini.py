"""Sessions in the format of Gemini: detected, stored and served as pushed, compacted, and shown on pages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from compaction.validation import validate
from sessions.models import AgentSession
from tests.api.client import Api
from tests.api.talk import output
from tests.compaction.gemini_checks import faults
from tests.plugins.reused import reused

JSON = dict[str, Any]

MODEL = "gemini-3-pro-preview"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SYSTEM = {"parts": [{"text": "You are a careful coder."}]}
TOOLS = [{"functionDeclarations": [{"name": "read_file"}, {"name": "look"}]}, {"googleSearch": {}}]
USAGE = {
    "promptTokenCount": 1_000,
    "cachedContentTokenCount": 600,
    "candidatesTokenCount": 30,
    "thoughtsTokenCount": 20,
    "totalTokenCount": 1_050,
}


def turn(number: int) -> list[JSON]:
    call: JSON = {"functionCall": {"name": "read_file", "args": {"path": f"src/file_{number}.py", "n": 1.50}}}
    response = {"name": "read_file", "response": {"output": output(number)}}
    return [
        {"role": "user", "parts": [{"text": f"Please read file {number}."}]},
        {
            "parts": [
                {"text": f"**Reading** {number} now", "thought": True},
                {**call, "thoughtSignature": f"c2lnbmF0dXJl{number:04}"},
            ],
            "role": "model",
        },
        {"role": "user", "parts": [{"functionResponse": response}]},
        {"role": "model", "parts": [{"text": f"File {number} defines handlers."}]},
    ]


@reused
def compacted(api: Api) -> Api:
    """A caller whose session `s1` was compacted."""
    body = {"id": "s1", "model": MODEL, "budget": {"input_tokens": 6_000}, "system": SYSTEM, "tools": TOOLS}
    assert api.post("sessions/", body).status_code == 201
    for number in range(12):
        response = api.post("sessions/s1/turns/", {"messages": turn(number)})
        assert response.status_code == 201, response.content
    return api


def test_its_prompt_is_detected_compacted_and_valid(compacted: Api) -> None:
    session = compacted.get("sessions/s1/").json()
    assert (session["format"], session["compactions"] > 0) == ("gemini", True)
    prompt = compacted.get("sessions/s1/prompt/").json()
    assert (prompt["fits"], prompt["system"], prompt["tools"]) == (True, SYSTEM, TOOLS)
    assert list(faults(prompt["messages"], signatures=True)) == []
    assert prompt["messages"][-4:] == turn(11)
    assert "h_" in json.dumps(prompt["messages"][:-4])
    body = {"format": "gemini", "model": MODEL, "messages": prompt["messages"]}
    assert compacted.post("prompts/validate/", body).json()["violations"] == []


def test_usage_is_read(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "model": MODEL})
    assert api.post("sessions/s1/turns/", {"messages": turn(0), "usage": USAGE}).status_code == 201
    [last] = api.get("sessions/s1/turns/?last=1").json()["data"]
    assert last["usage"] == {"uncached": 400, "cache_read": 600, "cache_write": 0, "output": 50}
    assert last["cost_microusd"] > 0


def test_prompts_keep_the_pushed_bytes_and_grow_at_their_end(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "model": MODEL})
    shown: list[JSON] = []
    for number in range(3):
        pushed = turn(number)
        for messages in (pushed[:1], pushed[1:]):
            pieces = [json.dumps(message).replace('": ', '":   ') for message in messages]
            text = f'{{"messages": [{", ".join(pieces)}]}}'
            response = api.call("POST", "sessions/s1/turns/", text.encode())
            assert response.status_code == 201, response.content
            body = api.get("sessions/s1/prompt/").content.decode()
            shown += messages
            assert json.loads(body)["messages"] == shown
            assert all(piece in body for piece in pieces)
    assert AgentSession.objects.get().needs_repair is False


def test_other_arguments_and_responses_are_another_history(api: Api) -> None:
    """The ids of calls and responses are not part of their content, unlike arguments and results."""

    def history(issue: int, state: str, id: str = "") -> list[JSON]:
        call: JSON = {"name": "issue", "args": {"id": issue}} | ({"id": id} if id else {})
        response: JSON = {"name": "issue", "response": {"status": state}} | ({"id": id} if id else {})
        return [
            {"role": "user", "parts": [{"text": "Triage the issue."}]},
            {"role": "model", "parts": [{"functionCall": call}]},
            {"role": "user", "parts": [{"functionResponse": response}]},
        ]

    def reconciled(messages: list[JSON]) -> str:
        response = api.post("sessions/s1/reconcile/", {"messages": messages})
        status: str = response.json()["reconciled"]["status"]
        return status

    api.post("sessions/", {"id": "s1", "model": MODEL})
    assert reconciled(history(1, "open")) == "appended"
    assert reconciled(history(1, "open", id="issue_1")) == "unchanged"
    first, *others = history(1, "open")
    assert reconciled([{"parts": first["parts"]}, *others]) == "unchanged"
    spelled = json.dumps(others).replace("functionCall", "function_call").replace("functionR", "function_r")
    assert "function_response" in spelled
    assert reconciled([first, *json.loads(spelled)]) == "unchanged"
    assert reconciled(history(1, "closed")) == "forked"
    assert reconciled(history(2, "open")[:2]) == "forked"


@pytest.mark.parametrize("target", ["anthropic", "openai", "openai-responses"])
def test_its_session_is_served_in_another_format(compacted: Api, target: str) -> None:
    prompt = compacted.get(f"sessions/s1/prompt/?format={target}").json()
    assert validate(prompt["messages"], target) == ()
    assert "careful coder" in json.dumps(prompt)
    assert "read_file" in json.dumps(prompt["tools"])


def test_messages_of_other_formats_that_precede_it_are_translated(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "model": MODEL})
    api.post("sessions/s1/turns/", {"messages": [{"role": "user", "content": "Hello"}]})
    api.post("sessions/s1/turns/", {"messages": turn(1)[1:]})
    assert api.get("sessions/s1/").json()["format"] == "gemini"
    messages = api.get("sessions/s1/prompt/").json()["messages"]
    assert messages == [{"role": "user", "parts": [{"text": "Hello"}]}, *turn(1)[1:]]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"role": "assistant", "parts": [{"text": "x"}]}, "`role` must be one of: user, model"),
        ({"role": "user", "parts": "x"}, "`parts` must be an array"),
        ({"role": "user", "parts": [{"words": "x"}]}, "`parts[0]` must have one of: text"),
        ({"role": "user", "parts": [{"type": "text", "text": "x"}]}, "the unknown field `type`"),
        ({"role": "model", "parts": [{"functionCall": {"args": {}}}]}, "a string `functionCall.name`"),
        ({"candidates": [], "usageMetadata": {}}, "Send its `candidates[0].content` instead"),
    ],
)
def test_invalid_contents_are_rejected_with_the_reason(api: Api, message: JSON, reason: str) -> None:
    api.post("sessions/", {"id": "s1", "format": "gemini"})
    error = api.post("sessions/s1/turns/", {"messages": [message]}).json()["error"]
    assert (error["code"], reason in error["message"]) == ("invalid_message", True), error


@pytest.mark.slow
def test_pages_show_its_parts(compacted: Api, member_client: Client) -> None:
    look = {"functionCall": {"name": "look", "args": {"at": "the diagram"}}, "thoughtSignature": "c2ln"}
    image = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    response = {"name": "look", "response": {"error": "Too dark to see."}, "parts": [image]}
    messages = [
        {"role": "user", "parts": [{"text": "See this."}, image]},
        {"role": "model", "parts": [look]},
        {"role": "user", "parts": [{"functionResponse": response}]},
        {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "print(40 + 2)"}}]},
    ]
    assert compacted.post("sessions/s1/turns/", {"messages": messages}).status_code == 201
    session = AgentSession.objects.select_related("project").get(external_id="s1")
    at = [session.project.slug, session.pk]

    def shown(name: str, *arguments: Any) -> str:
        page = member_client.get(reverse(name, args=[*at, *arguments]))
        assert page.status_code == 200
        return page.content.decode()

    first, last = shown("session_turn", 0), shown("session_turn", 12)
    for text in ("thinking", "Reading", "src/file_0.py", "handler_0_1"):
        assert text in first
    for text in ("the diagram", "Too dark to see.", "code_execution", "print(40 + 2)", "/images/0/"):
        assert text in last
    assert "You are a careful coder." in shown("session_past_prompt_system", 12)
    assert "in Gemini format" in shown("session_prompt")
    assert "handler_11_1" in shown("session_past_prompt", 12)
    assert "look" in shown("session")


def test_tools_may_have_null_fields_as_the_sdk_dumps_them(api: Api) -> None:
    tools = [{"google_search": None, "function_declarations": [{"name": "look", "parameters": None}]}]
    response = api.post("sessions/", {"id": "s1", "tools": tools})
    assert (response.status_code, response.json()["format"]) == (201, "gemini")
    api.post("sessions/s1/turns/", {"messages": turn(0)})
    assert api.get("sessions/s1/prompt/").json()["tools"] == tools
    [named] = api.get("sessions/s1/prompt/?format=anthropic").json()["tools"]
    assert named["name"] == "look"
    response = api.post("sessions/", {"id": "s2", "tools": [{"google_search": None}]})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "tools[0]")
