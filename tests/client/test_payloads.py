"""Messages as dictionaries, SDK objects and whole responses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from contextapp_client import payloads

RESPONSE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5-5",
    "content": [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a.py"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "cache_read_input_tokens": 900, "output_tokens": 20},
}
COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "gpt-5",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2},
}


def sent(value: object) -> Any:
    return json.loads(payloads.encode(value))


def test_a_message_is_unchanged() -> None:
    message = {"role": "user", "content": "hi"}
    assert payloads.read([message]) == payloads.Pushed(messages=[message])


@pytest.mark.slow
def test_a_response_object_of_anthropic_becomes_its_message() -> None:
    from anthropic.types import Message

    pushed = payloads.read([Message.model_validate(RESPONSE)])
    assert sent(pushed.messages) == [{"role": "assistant", "content": RESPONSE["content"]}]
    assert pushed.model == "claude-sonnet-5-5"
    assert sent(pushed.usage) == RESPONSE["usage"]


def test_a_response_as_json_becomes_its_message() -> None:
    assert sent(payloads.read([RESPONSE]).messages) == [{"role": "assistant", "content": RESPONSE["content"]}]
    pushed = payloads.read([COMPLETION])
    assert pushed.messages == [{"role": "assistant", "content": "Hi."}]
    assert pushed.usage == COMPLETION["usage"]
    assert pushed.model == "gpt-5"


def test_a_response_of_the_responses_api_becomes_its_items() -> None:
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []},
    ]
    usage = {"input_tokens": 10, "output_tokens": 2}
    response = {"object": "response", "model": "gpt-5", "output": output, "usage": usage}
    assert payloads.read([response]) == payloads.Pushed(messages=[*output], usage=usage, model="gpt-5")
    assert payloads.read(output) == payloads.Pushed(messages=[*output])


@pytest.mark.slow
def test_content_blocks_and_usage_objects() -> None:
    from anthropic.types import TextBlock, ToolUseBlock, Usage

    blocks = [
        TextBlock(type="text", text="I look."),
        ToolUseBlock(type="tool_use", id="toolu_1", name="read_file", input={"path": "a.py"}),
    ]
    message = {"role": "assistant", "content": blocks}
    assert sent(payloads.read([message]).messages) == [{"role": "assistant", "content": RESPONSE["content"]}]
    assert sent(Usage(input_tokens=3, output_tokens=4)) == {"input_tokens": 3, "output_tokens": 4}
