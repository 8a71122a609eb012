"""Spans of Vercel's AI SDK, as versions 5 and 6 record them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions.models import AgentSession, ToolRun
from tests.telemetry.events import post
from tests.telemetry.test_spans import send, span, stored

pytestmark = pytest.mark.django_db

JSON = dict[str, Any]
TOOL = {"type": "function", "name": "ls", "description": "List", "inputSchema": {"type": "object"}}
PNG = "iVBORw0KGgo="
CALL = {"type": "tool-call", "toolCallId": "c1", "toolName": "ls", "input": {"path": "."}}
RESULT = {
    "type": "tool-result", "toolCallId": "c1", "toolName": "ls", "output": {"type": "json", "value": ["a"]},
}  # fmt: skip
ASKED: JSON = {
    "role": "user",
    "content": [
        {"type": "text", "text": "List the files."},
        {"type": "file", "mediaType": "image/png", "data": PNG},
    ],
}


def attributes(provider: str, prompt: list[JSON], **response: Any) -> JSON:
    values = {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.telemetry.metadata.sessionId": "s-1",
        "ai.prompt.messages": json.dumps(prompt),
        "ai.prompt.tools": [json.dumps(TOOL)],
        "gen_ai.system": provider,
        "gen_ai.request.model": "m-1",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 5,
    }
    return values | {f"ai.response.{name}": value for name, value in response.items()}


def run(key: str, provider: str, reasoning: JSON) -> AgentSession:
    """Send the spans of a run with one tool call, and of the run and the tool themselves."""
    prompt = [{"role": "system", "content": "Be brief."}, ASKED]
    answered = [{"type": "reasoning", "text": "Hm.", "providerOptions": reasoning}, CALL]
    later = [*prompt, {"role": "assistant", "content": answered}, {"role": "tool", "content": [RESULT]}]
    calls = json.dumps([{**CALL, "type": None, "input": '{"path": "."}'}])
    first = attributes(provider, prompt, reasoning="Hm.", toolCalls=calls)
    outer = {"ai.operationId": "ai.generateText", "ai.prompt": "{}", "ai.usage.inputTokens": 200}
    tool = {"ai.operationId": "ai.toolCall", "ai.toolCall.id": "c1", "ai.toolCall.name": "ls"}
    for _ in range(2):  # repeated exports add nothing
        send(
            key,
            span(1, **first),
            span(2, **tool),
            span(3, **attributes(provider, later, text="One.")),
            span(4, **outer),
        )
    session = AgentSession.objects.get()
    assert (session.external_id, session.turn_count, session.uncached_tokens) == ("s-1", 2, 200)
    assert ToolRun.objects.get().call_id == "c1"
    return session


def test_anthropic(api_key: str) -> None:
    session = run(api_key, "anthropic.messages", {"anthropic": {"signature": "s"}})
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    call = {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}}
    assert stored(session) == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "List the files."}, {"type": "image", "source": source}],
        },
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": '["a"]'}]},
        {"role": "assistant", "content": [{"type": "text", "text": "One."}]},
    ]
    preamble = session.preambles.get()
    assert json.loads(bytes(preamble.system or b"")) == [{"type": "text", "text": "Be brief."}]
    [listed] = json.loads(bytes(preamble.tools or b""))
    assert listed == {"name": "ls", "description": "List", "input_schema": {"type": "object"}}


def test_responses(api_key: str) -> None:
    session = run(api_key, "openai.responses", {"openai": {"itemId": "rs_1"}})
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
    assert stored(session) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "List the files."}, image]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": '{"path": "."}'},
        {"type": "function_call_output", "call_id": "c1", "output": '["a"]'},
        {"role": "assistant", "content": [{"type": "output_text", "text": "One."}]},
    ]


def test_chat(api_key: str) -> None:
    session = run(api_key, "acme.chat", {})
    function = {"name": "ls", "arguments": '{"path": "."}'}
    *_, asked, call, result, answer = stored(session)
    assert asked["content"][1] == {
        "type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"},
    }  # fmt: skip
    assert call == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Hm.",
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    assert result == {"role": "tool", "tool_call_id": "c1", "content": '["a"]'}
    assert answer == {"role": "assistant", "content": "One."}


def test_a_tool_that_the_provider_runs(api_key: str) -> None:
    """The span of the call lacks the result, so the answer is stored with the next call."""
    search = {"toolCallId": "srvtoolu_1", "toolName": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_result", "url": "https://example.com", "encryptedContent": "e"}
    output = {"type": "json", "value": [found]}
    prompt: list[JSON] = [{"role": "user", "content": [{"type": "text", "text": "Search."}]}]
    answer = [
        {**search, "type": "tool-call", "providerExecuted": True},
        {**search, "type": "tool-result", "output": output},
        {"type": "text", "text": "Found."},
    ]
    later = [*prompt, {"role": "assistant", "content": answer}, *prompt]
    provider = "anthropic.messages"
    send(
        api_key,
        span(1, **attributes(provider, prompt, text="Found.", toolCalls=json.dumps([search]))),
        span(2, **attributes(provider, later, text="Again.")),
    )
    session = AgentSession.objects.get()
    _, said, *_, last = stored(session)
    assert [block["type"] for block in said["content"]] == [
        "server_tool_use", "web_search_tool_result", "text",
    ]  # fmt: skip
    assert said["content"][1]["content"][0]["encrypted_content"] == "e"
    assert last["content"][0]["text"] == "Again."


def test_without_inputs_only_the_usage_is_stored(api_key: str) -> None:
    values = attributes("openai.chat", [], text="Hello")
    del values["ai.prompt.messages"]
    send(api_key, span(1, **values))
    session = AgentSession.objects.get()
    assert (session.turn_count, session.message_count, session.uncached_tokens) == (1, 0, 100)


def test_version_5_does_not_record_the_reasoning(api_key: str) -> None:
    """The history of the next call has it, and still continues the session."""
    provider, asked = "openai.responses", {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    reasoning = {"type": "reasoning", "text": "Hm.", "providerOptions": {"openai": {"itemId": "rs_1"}}}
    answer = {"role": "assistant", "content": [reasoning, {"type": "text", "text": "Hello"}]}
    used = {"ai.usage.reasoningTokens": 5}
    send(
        api_key,
        span(1, **attributes(provider, [asked], text="Hello"), **used),
        span(2, **attributes(provider, [asked, answer, asked], text="Again"), **used),
    )
    session = AgentSession.objects.get()
    roles = [message.get("role", message.get("type")) for message in stored(session)]
    assert roles == ["user", "reasoning", "assistant", "user", "reasoning", "assistant"]


@pytest.mark.parametrize("provider", ["anthropic.messages", "openai.responses", "openai.chat"])
def test_parts_of_unknown_form_are_no_errors(api_key: str, provider: str) -> None:
    odd: JSON = {"type": [], "text": {}, "value": [[]]}
    call = {**CALL, "input": odd, "providerExecuted": True, "providerOptions": {"openai": {"itemId": [1]}}}
    said = {"role": "assistant", "content": [odd, call, {**RESULT, "output": odd}]}
    results = {"role": "tool", "content": [{**RESULT, "output": odd}, {"type": "tool-result"}]}
    values = attributes(provider, [ASKED, said, results], toolCalls="[{}, 5]")
    export = {"resourceSpans": [{"scopeSpans": [{"spans": [span(1, **values)]}]}]}
    assert post(api_key, export, signal="traces").status_code == 200


@pytest.mark.parametrize("provider", ["anthropic.messages", "openai.responses", "openai.chat"])
def test_a_text_of_several_blocks_is_one_block_in_its_span(api_key: str, provider: str) -> None:
    parts = [{"type": "text", "text": "I "}, {"type": "text", "text": "look."}]
    later = [ASKED, {"role": "assistant", "content": parts}, ASKED]
    send(
        api_key,
        span(1, **attributes(provider, [ASKED], text="I look.")),
        span(2, **attributes(provider, later, text="One.")),
    )
    assert len(stored(AgentSession.objects.get())) == 4
