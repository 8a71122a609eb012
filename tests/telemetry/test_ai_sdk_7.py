"""Spans of version 7 of Vercel's AI SDK, which `@ai-sdk/otel` records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accounts.models import Project
from sessions.models import AgentSession, ToolRun
from tests.telemetry.events import SESSION
from tests.telemetry.test_ai_sdk import JSON, PNG
from tests.telemetry.test_one_call import Sources
from tests.telemetry.test_spans import send, span, stored

pytestmark = pytest.mark.django_db

CALL = {"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"path": "."}}
IMAGE = {"type": "blob", "modality": "image", "mime_type": None, "content": PNG}
NOTES = {"type": "blob", "mime_type": "text/plain", "content": "SGkgdGhlcmU="}
FILE = {"type": "file", "data": {"type": "data", "data": PNG}, "mediaType": "image/png"}
SEARCH = {"type": "tool_call", "id": "srvtoolu_1", "name": "web_search", "arguments": {"query": "x"}}
FOUND = {"type": "tool_call_response", "id": "srvtoolu_1", "response": [{"encryptedContent": "e"}]}


def text(content: str) -> JSON:
    return {"type": "text", "content": content}


def result(response: Any) -> JSON:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": response}]}


def thought(content: str) -> JSON:
    return {"type": "reasoning", "content": content}


def call(provider: str, id: str, history: list[JSON], answer: list[JSON]) -> JSON:
    """Return the attributes of the span of a model call."""
    tools = [{"type": "function", "name": "ls", "description": "List", "inputSchema": {"type": "object"}}]
    return {
        "session.id": SESSION,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": "m-1",
        "gen_ai.system_instructions": json.dumps([text("Be brief.")]),
        "gen_ai.input.messages": json.dumps(history),
        "gen_ai.tool.definitions": json.dumps(tools),
        "gen_ai.client.operation.duration": 0.02,
        "gen_ai.client.operation.time_to_first_chunk": 0.01,
        "gen_ai.response.id": id,
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_creation.input_tokens": 10,
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": answer}]),
    }


def run(key: str, provider: str, ids: str, output: Any) -> AgentSession:
    """Send the spans of a run with one tool call, whose first answer has two blocks of text."""
    asked: JSON = {"role": "user", "parts": [text("List the files."), IMAGE]}
    blocks = [thought(""), thought("Hm."), text("I "), thought("So."), text("look."), CALL]
    later = [asked, {"role": "assistant", "parts": blocks}, result(output)]
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 200}
    step = {"gen_ai.operation.name": "agent_step"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ls", "gen_ai.tool.call.id": "c1"}
    first = [thought("Hm."), thought("So."), text("I look."), CALL]
    for _ in range(2):  # repeated exports add nothing
        send(
            key,
            span(1, **call(provider, f"{ids}_1", [asked], first)),
            span(2, **tool),
            span(3, **call(provider, f"{ids}_2", later, [text("One.")])),
            span(4, **agent),
            span(5, **step),
        )
    session = AgentSession.objects.get()
    assert (session.external_id, session.turn_count) == (SESSION, 2)
    assert (session.uncached_tokens, session.cache_read_tokens, session.cache_write_tokens) == (60, 120, 20)
    assert ToolRun.objects.get().call_id == "c1"
    assert {turn.first_token_ms for turn in session.turns.all()} == {10}
    return session


def test_anthropic(api_key: str) -> None:
    session = run(api_key, "anthropic", "msg", {"type": "content", "value": [FILE]})
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    tool_use = {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}}
    thinking = [{"type": "thinking", "thinking": said} for said in ("Hm.", "So.")]
    assert stored(session) == [
        {"role": "user", "content": [{"type": "text", "text": "List the files."}, image]},
        {"role": "assistant", "content": [*thinking, {"type": "text", "text": "I look."}, tool_use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [image]}]},
        {"role": "assistant", "content": [{"type": "text", "text": "One."}]},
    ]
    preamble = session.preambles.get()
    assert json.loads(bytes(preamble.system or b"")) == [{"type": "text", "text": "Be brief."}]
    [listed] = json.loads(bytes(preamble.tools or b""))
    assert listed == {"name": "ls", "description": "List", "input_schema": {"type": "object"}}


def test_responses(api_key: str) -> None:
    """The provider is `openai` for both of its APIs; the response has the id of one."""
    session = run(api_key, "openai", "resp", ["a"])
    reasoning = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": said}]} for said in ("Hm.", "So.")
    ]
    assert stored(session)[2:] == [
        *reasoning,
        {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": '{"path":"."}'},
        {"type": "function_call_output", "call_id": "c1", "output": '["a"]'},
        {"role": "assistant", "content": [{"type": "output_text", "text": "One."}]},
    ]


def test_chat(api_key: str) -> None:
    *_, asked, called, result, answer = stored(run(api_key, "openai", "chatcmpl", {"denied": True}))
    url = {"url": f"data:image/png;base64,{PNG}"}
    assert asked["content"][1] == {"type": "image_url", "image_url": url}
    assert (called["content"], called["reasoning_content"]) == ("I look.", "Hm.So.")
    assert called["tool_calls"][0]["function"] == {"name": "ls", "arguments": '{"path":"."}'}
    assert (result["content"], answer["content"]) == ("Tool call execution denied.", "One.")


def test_a_tool_that_the_provider_runs_with_a_text_file(api_key: str) -> None:
    """The result is in the span of the call, in another order than in the next prompt."""
    asked = {"role": "user", "parts": [text("Search."), NOTES]}
    first = [text("I search. Found."), SEARCH, FOUND]
    later = {"role": "assistant", "parts": [text("I search. "), SEARCH, FOUND, text("Found.")]}
    send(
        api_key,
        span(1, **call("anthropic", "msg_1", [asked], first)),
        span(2, **call("anthropic", "msg_2", [asked, later, asked], [text("Again.")])),
    )
    question, said, *_, last = stored(AgentSession.objects.get())
    assert question["content"][1]["source"] == {
        "type": "text",
        "media_type": "text/plain",
        "data": "Hi there",
    }
    assert [block["type"] for block in said["content"]] == [
        "server_tool_use", "web_search_tool_result", "text",
    ]  # fmt: skip
    assert said["content"][1]["content"] == [{"encrypted_content": "e"}]
    assert last["content"] == [{"type": "text", "text": "Again."}]


@pytest.mark.parametrize("is_late", [False, True])
def test_a_call_that_passed_through_the_gateway(project: Project, api_key: str, *, is_late: bool) -> None:
    """It has the same response id and session, and is stored once, whichever is first."""
    sources = Sources(project, api_key)
    if not is_late:
        sources.gateway_call(0)
    history = [{"role": "user", "parts": [text("Question 0")]}]
    attributes = call("anthropic", "msg_0", history, [text("I look.")])
    usage = {"gen_ai.usage.input_tokens": 4_122, "gen_ai.usage.output_tokens": 57}
    send(api_key, span(1, **attributes | usage))
    if is_late:
        sources.gateway_call(0)
    session = AgentSession.objects.get()
    assert session.message_count == 2
    assert sum(turn.output_tokens or 0 for turn in session.turns.all()) == 57
