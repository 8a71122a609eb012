"""Which messages a dialect accepts, and the reasons for rejecting the others."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.dialects import detect_session, get_dialect

JSON = dict[str, Any]
ANTHROPIC, CHAT, RESPONSES = "anthropic", "openai", "openai-responses"


def says(content: Any, role: str = "user", **fields: Any) -> JSON:
    return {"role": role, "content": content, **fields}


def calls(*made: Any, role: str = "assistant") -> JSON:
    return {"role": role, "content": None, "tool_calls": list(made)}


REJECTED = [
    (ANTHROPIC, "hello", "A message must be an object."),
    (ANTHROPIC, says("x", "developer"), "`role` must be `user`, `assistant` or `system`."),
    (ANTHROPIC, {"role": ["user"], "content": "x"}, "`role` must be `user`, `assistant` or `system`."),
    (ANTHROPIC, says("x", tool_calls=[{}]), "`tool_calls` is not supported."),
    (ANTHROPIC, says(None), "`content` must be a string or an array of content blocks."),
    (ANTHROPIC, says(["x"]), "`content[0]` must be an object."),
    (ANTHROPIC, says([{"text": "x"}]), "`content[0]` must have a `type`."),
    (ANTHROPIC, says([{"type": "text"}]), "`content[0]` must have a string `text`."),
    (ANTHROPIC, says([{"type": "tool_use", "id": "t", "name": "f"}]), "only assistant messages have"),
    (ANTHROPIC, says([{"type": "tool_use", "id": "t"}], "assistant"), "must have a string `name`."),
    (ANTHROPIC, says([{"type": "tool_result"}]), "must have a string `tool_use_id`."),
    (ANTHROPIC, says([{"type": "tool_result", "tool_use_id": "t", "content": 5}]), "must have a `content`"),
    (ANTHROPIC, says([{"type": "tool_result", "tool_use_id": "t", "content": ["x"]}]), "have a `content`"),
    (ANTHROPIC, says([{"type": "image", "source": "x"}]), "must have an object `source`."),
    (ANTHROPIC, says([{"type": "image_url"}]), "has the unknown type `image_url`."),
    (CHAT, ["hello"], "A message must be an object."),
    (CHAT, says("x", "model"), "`role` must be one of: assistant, developer, function, system, tool, user."),
    (CHAT, says("x", "tool"), "A tool message must have a string `tool_call_id`."),
    (CHAT, says(None, "tool", tool_call_id=5), "A tool message must have a string `tool_call_id`."),
    (CHAT, says("x", tool_call_id="c"), "Only tool messages have a `tool_call_id`."),
    (CHAT, calls({"function": {}}, role="user"), "Only assistant messages have tool calls."),
    (CHAT, calls({"name": "f"}), "`tool_calls` must be an array of objects"),
    (CHAT, calls({"type": "custom", "function": {}}), "`tool_calls` must be an array of objects"),
    (CHAT, calls("f"), "`tool_calls` must be an array of objects"),
    (CHAT, says(None, "assistant", function_call="f"), "`function_call` must be an object."),
    (CHAT, says(5, "assistant", refusal="No."), "`content` must be a string or an array of content parts."),
    (CHAT, says(None), "`content` is required."),
    (CHAT, {"role": "assistant", "refusal": ""}, "`content` is required."),
    (CHAT, {"role": "tool", "tool_call_id": "c"}, "`content` is required."),
    (CHAT, says([{"type": "text", "text": 5}]), "`content[0]` must have a string `text`."),
    (RESPONSES, None, "An item must be an object."),
    (RESPONSES, {"type": "thinking"}, "`thinking` is not a known `type` of an item."),
    (RESPONSES, says("x", "tool"), "`role` must be one of: assistant, developer, system, user."),
    (RESPONSES, {"role": {}, "content": "x"}, "`role` must be one of: assistant, developer, system, user."),
    (RESPONSES, says("x", refusal="No."), "`refusal` is not supported."),
    (RESPONSES, says({}), "`content` must be a string or an array of content parts."),
    (RESPONSES, says([{"type": "text", "text": "x"}]), "`content[0]` has the unknown type `text`."),
    (RESPONSES, {"type": "function_call", "name": "f", "arguments": "{}"}, "must have a string `call_id`."),
    (RESPONSES, {"type": "function_call", "call_id": "c", "name": "f"}, "must have a string `arguments`."),
    (RESPONSES, {"type": "function_call_output", "output": "x"}, "must have a string `call_id`."),
    (RESPONSES, {"type": "function_call_output", "call_id": "c"}, "must have an `output`."),
    (RESPONSES, {"type": "reasoning", "summary": "x"}, "`summary` must be an array."),
]


@pytest.mark.parametrize(("format", "item", "reason"), REJECTED, ids=[str(row[:2])[:70] for row in REJECTED])
def test_a_rejected_message_has_a_reason(format: str, item: Any, reason: str) -> None:
    assert reason in (get_dialect(format).message_error(item) or "")


SCREENSHOT = {"type": "image", "source": {"type": "url", "url": "u"}}
SEARCHED = {"type": "web_search_tool_result", "tool_use_id": "t", "content": []}

ACCEPTED = [
    (ANTHROPIC, says([])),
    (ANTHROPIC, says("x", tool_calls=None)),
    (ANTHROPIC, says([SCREENSHOT, {"type": "search_result"}, SEARCHED])),
    (ANTHROPIC, says([{"type": "tool_result", "tool_use_id": "t", "content": [SCREENSHOT]}])),
    (ANTHROPIC, says([{"type": "redacted_thinking"}], "assistant")),
    (CHAT, calls({"type": "custom", "custom": {}}, {"function": {}})),
    (CHAT, says(None, "assistant")),
    (CHAT, says(None, "function", name="f")),
    (CHAT, {"role": "assistant", "refusal": "No."}),
    (CHAT, says("x", tool_call_id=None, tool_calls=[], annotations=[])),
    (CHAT, says([{"type": "file", "file": {}}, {"type": "input_text", "text": "x"}])),
    (RESPONSES, says([{"type": "refusal", "refusal": "No."}, {"type": "input_image"}])),
    (RESPONSES, says("x", refusal=None)),
    (RESPONSES, {"type": "computer_call_output", "call_id": "c", "output": {}}),
    (RESPONSES, {"type": "local_shell_call_output", "id": "c", "output": "x"}),
    (RESPONSES, {"type": "reasoning"}),
]


@pytest.mark.parametrize(("format", "item"), ACCEPTED, ids=[str(row)[:70] for row in ACCEPTED])
def test_an_unusual_message_is_accepted(format: str, item: JSON) -> None:
    assert get_dialect(format).message_error(item) is None


@pytest.mark.parametrize(
    ("item", "session"),
    [
        (says([{"type": "file", "file": {}}]), CHAT),
        (says([{"type": "text", "text": "x", "citations": []}]), ANTHROPIC),
        (says([{"type": "text", "text": "x"}], type="message", id="msg_1"), ANTHROPIC),
        (says([{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]), ANTHROPIC),
        (says([{"type": "text", "text": "x"}]), None),
        (says([{"type": "refusal", "refusal": "No."}], "assistant", type="message"), RESPONSES),
        (says("x", name="Ada"), CHAT),
    ],
)
def test_a_message_determines_the_dialect_of_its_session(item: JSON, session: str | None) -> None:
    assert detect_session([item]) == session


@pytest.mark.parametrize(
    ("tool", "session"),
    [
        ({"name": "f", "input_schema": {}}, ANTHROPIC),
        ({"type": "custom", "name": "f", "input_schema": {}}, ANTHROPIC),
        ({"type": "bash_20250124", "name": "bash"}, ANTHROPIC),
        ({"type": "custom", "custom": {"name": "f"}}, CHAT),
        ({"type": "function", "function": {"name": "f"}}, CHAT),
        ({"type": "function", "name": "f"}, RESPONSES),
        ({"type": "web_search"}, RESPONSES),
        ({"type": "function"}, None),
        ({"name": 5, "type": "function"}, None),
        ("a name", None),
        ({}, None),
    ],
)
def test_a_tool_determines_the_dialect_of_its_session(tool: Any, session: str | None) -> None:
    assert detect_session([says("x")], [tool]) == session
