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


def read(messages: Any) -> payloads.Pushed:
    """Return the result of `payloads.read`, which pauses after many messages."""
    steps = payloads.read(messages)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def sent(value: object) -> Any:
    return json.loads(payloads.encode(value))


def test_a_message_is_unchanged() -> None:
    message = {"role": "user", "content": "hi"}
    assert read([message]) == payloads.Pushed(messages=[message])


@pytest.mark.slow
def test_a_response_object_of_anthropic_becomes_its_message() -> None:
    from anthropic.types import Message

    pushed = read([Message.model_validate(RESPONSE)])
    assert sent(pushed.messages) == [{"role": "assistant", "content": RESPONSE["content"]}]
    assert sent(pushed.reported) == {"usage": RESPONSE["usage"], "model": "claude-sonnet-5-5"}


def test_a_response_as_json_becomes_its_message() -> None:
    assert sent(read([RESPONSE]).messages) == [{"role": "assistant", "content": RESPONSE["content"]}]
    pushed = read([COMPLETION])
    assert pushed.messages == [{"role": "assistant", "content": "Hi."}]
    assert pushed.reported == {"usage": COMPLETION["usage"], "model": "gpt-5"}


def test_a_response_of_gemini_becomes_its_content() -> None:
    content = {"role": "model", "parts": [{"text": "Hi.", "thoughtSignature": "c2ln"}]}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 2}
    response = {"candidates": [{"content": content}], "usageMetadata": usage, "modelVersion": "gemini-3-pro"}
    assert read([response]) == payloads.Pushed(
        messages=[content], reported={"usage": usage, "model": "gemini-3-pro"}
    )
    assert read([content]) == payloads.Pushed(messages=[content])
    assert read([{"candidates": None, "usageMetadata": usage}]).messages == []


def test_a_response_of_the_responses_api_becomes_its_items() -> None:
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []},
    ]
    usage = {"input_tokens": 10, "output_tokens": 2}
    requested = [{"type": "compaction", "compact_threshold": 50_000}]
    response = {"object": "response", "model": "gpt-5", "output": output, "usage": usage}
    pushed = read([{**response, "context_management": requested}])
    reported = {"usage": usage, "model": "gpt-5"}
    assert pushed == payloads.Pushed(messages=[*output], reported=reported)
    assert read(output) == payloads.Pushed(messages=[*output])


@pytest.mark.slow
def test_content_blocks_and_usage_objects() -> None:
    from anthropic.types import TextBlock, ToolUseBlock, Usage

    blocks = [
        TextBlock(type="text", text="I look."),
        ToolUseBlock(type="tool_use", id="toolu_1", name="read_file", input={"path": "a.py"}),
    ]
    message = {"role": "assistant", "content": blocks}
    assert sent(read([message]).messages) == [{"role": "assistant", "content": RESPONSE["content"]}]
    assert sent(Usage(input_tokens=3, output_tokens=4)) == {"input_tokens": 3, "output_tokens": 4}


@pytest.mark.slow
def test_values_that_the_sdk_of_openai_parsed_are_not_sent() -> None:
    """OpenAI rejects them: https://github.com/openai/openai-python/issues/2720."""
    from openai.types.chat import ParsedChatCompletion
    from openai.types.responses import ParsedResponse

    function = {"name": "f", "arguments": "{}", "parsed_arguments": {"a": 1}}
    call = {"id": "c1", "type": "function", "function": function}
    message = {"role": "assistant", "content": "{}", "parsed": {"a": 1}, "tool_calls": [call]}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    fields = {**COMPLETION, "created": 1, "choices": choices, "usage": None}
    completion = ParsedChatCompletion[Any].model_validate(fields)
    text = {"type": "output_text", "text": "{}", "annotations": [], "parsed": {"a": 1}}
    said = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [text]}
    called = {"type": "function_call", "call_id": "c1", "id": "fc_1", **function}
    response = ParsedResponse[Any].model_validate(
        {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "gpt-5",
            "output": [said, called],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
    )
    for given in (completion, completion.choices[0].message, response):
        messages = sent(read([given]).messages)
        assert "parsed" not in json.dumps(messages)
        assert "{}" in json.dumps(messages)
    assert len(messages) == 2


@pytest.mark.parametrize("messages", [{"role": "user", "content": "hi"}, "hi"])
def test_a_message_that_is_not_in_a_list_is_rejected(messages: Any) -> None:
    with pytest.raises(TypeError, match="list of messages"):
        read(messages)


def test_a_response_that_is_not_in_a_list_is_rejected() -> None:
    from anthropic.types import Message

    with pytest.raises(TypeError, match="list of messages"):
        read(Message.model_validate(RESPONSE))  # type: ignore[arg-type]


@pytest.mark.parametrize("other", ["hi", ("user", "hi"), None])
def test_the_error_names_the_item_that_is_not_a_message(other: Any) -> None:
    with pytest.raises(TypeError, match=rf"`messages\[1\]` is of type {type(other).__name__}"):
        read([{"role": "user", "content": "hi"}, other])
