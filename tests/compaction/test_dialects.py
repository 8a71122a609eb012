"""Each dialect renders its own messages unchanged and translates those of the others."""

import json
from itertools import product
from typing import Any

import pytest

from compaction import dialects
from compaction.capabilities import Capabilities, capabilities_of
from compaction.errors import FormatError
from compaction.invariants.pairs import safe_cuts
from compaction.messages import Role, ToolCall, ToolResult
from compaction.rendering import render
from compaction.validation import validate
from tests.compaction.builders import (
    assistant,
    call,
    calls,
    dialogue,
    faults,
    result,
    system,
    tool_loop,
    user,
)
from tests.compaction.providers import faults as provider_faults

PNG = "iVBORw0KGgo="

ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Look", "cache_control": {"type": "ephemeral"}}]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
            {"type": "redacted_thinking", "data": "opaque"},
            {"type": "text", "text": "Reading."},
            {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a.py", "n": 1.50}},
            {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "alpha", "unknown": [1]},
            {
                "type": "tool_result",
                "tool_use_id": "toolu_2",
                "is_error": True,
                "content": [
                    {"type": "text", "text": "no such file"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                ],
            },
            {"type": "text", "text": "And now?"},
        ],
    },
    {
        "role": "assistant",
        "content": [{"type": "future_block", "x": {"y": None}}, {"type": "text", "text": "Ok"}],
    },
    {"role": "user", "content": "Thanks — schön ☃"},
]

OPENAI: list[dict[str, Any]] = [
    system(),
    {"role": "developer", "content": "Be brief."},
    {
        "role": "user",
        "name": "ann",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
        ],
    },
    {**calls(("call.1", "look", {"a": 1}), ("call.2", "look", {})), "refusal": None, "annotations": []},
    result("call.1", "one"),
    result("call.2", "two"),
    assistant("A picture."),
]


RESPONSES: list[dict[str, Any]] = [
    {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}], "type": "message"},
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "low"},
        ],
    },
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque"},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}],
    },
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": '{"a":  1.50}'},
    {"type": "custom_tool_call", "id": "ctc_2", "call_id": "c2", "name": "apply_patch", "input": "*** x"},
    {"type": "function_call_output", "call_id": "c1", "output": "one"},
    {
        "type": "custom_tool_call_output",
        "call_id": "c2",
        "output": [
            {"type": "input_text", "text": "two"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
        ],
    },
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
    {"role": "assistant", "content": "A picture.", "phase": "final_answer"},
]
GEMINI: list[dict[str, Any]] = [
    {
        "role": "user",
        "parts": [{"text": "What is this?"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}],
    },
    {
        "role": "model",
        "parts": [
            {"text": "**Looking**", "thought": True},
            {"text": "I look."},
            {"functionCall": {"name": "look", "args": {"a": 1.50}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"id": "fc-2", "name": "look", "args": {}}},
        ],
    },
    {
        "parts": [
            {"functionResponse": {"name": "look", "response": {"output": "one"}}},
            {
                "functionResponse": {
                    "id": "fc-2",
                    "name": "look",
                    "response": {"status": 1, "text": "two"},
                    "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}],
                }
            },
            {"text": "And now?"},
        ],
        "role": "user",
    },
    {
        "role": "model",
        "parts": [
            {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"text": "A picture."},
            {"text": "", "thoughtSignature": "ZW5k"},
        ],
    },
    {"role": "user", "parts": [{"text": "Thanks — schön ☃"}]},
]
SAMPLES = {"anthropic": ANTHROPIC, "openai": OPENAI, "openai-responses": RESPONSES, "gemini": GEMINI}
PAIRS = [(a, b) for a in SAMPLES for b in SAMPLES if a != b]


@pytest.mark.parametrize(
    ("format", "items"),
    [
        ("openai-responses", RESPONSES),
        ("gemini", GEMINI),
        ("anthropic", ANTHROPIC),
        ("openai", OPENAI),
        ("openai", dialogue(20)),
        ("openai", tool_loop(20, parallel=3)),
    ],
)
def test_unedited_messages_are_rendered_unchanged(format: str, items: list[dict[str, Any]]) -> None:
    before = json.dumps(items)
    assert json.dumps(render(dialects.parse(items, format=format), format=format).messages) == before


@pytest.mark.parametrize(
    ("items", "source", "target"),
    [*((SAMPLES[a], a, b) for a, b in PAIRS), (tool_loop(9, parallel=3), "openai", "anthropic")],
)
def test_translated_messages_are_valid(items: list[dict[str, Any]], source: str, target: str) -> None:
    prompt = render(dialects.parse(items, format=source), format=target)
    assert faults(prompt.messages, target) == []
    assert provider_faults(prompt.messages, target) == []
    assert validate(prompt.messages, target) == ()


@pytest.mark.parametrize("target", ["anthropic", "openai"])
def test_calls_and_texts_survive_a_translation_to_responses_and_back(target: str) -> None:
    items = tool_loop(5, parallel=3) if target == "openai" else ANTHROPIC[1:]
    there = render(dialects.parse(items, format=target), format="openai-responses").messages
    back = render(dialects.parse(there, format="openai-responses"), format=target).messages
    texts = [part for m in dialects.parse(items, format=target) for part in m.parts]
    again = [part for m in dialects.parse(back, format=target) for part in m.parts]
    for kind in (ToolCall, ToolResult):
        assert [p.call_id for p in again if isinstance(p, kind)] == [
            p.call_id for p in texts if isinstance(p, kind)
        ]


def test_a_response_of_several_items_becomes_one_message() -> None:
    messages = dialects.parse(RESPONSES, format="openai-responses")
    chat = render(messages, format="openai").messages
    assert [message["role"] for message in chat] == [
        "system", "user", "assistant", "tool", "tool", "user", "assistant",
    ]  # fmt: skip
    assert [call["id"] for call in chat[2]["tool_calls"]] == ["c1", "c2"]
    claude = render(messages, format="anthropic").messages
    assert [block["type"] for block in claude[1]["content"]] == ["text", "tool_use", "tool_use"]
    assert {"type": "base64", "media_type": "image/png", "data": PNG} in [
        block["source"] for block in claude[2]["content"][1]["content"] if block["type"] == "image"
    ]


def test_anthropic_gets_no_file_but_a_pdf_and_chat_completions_get_audio() -> None:
    files = [
        {"type": "input_file", "filename": name, "file_data": f"data:{kind};base64,{PNG}"}
        for name, kind in (("a.pdf", "application/pdf"), ("b.docx", "application/msword"))
    ]
    audio = {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}}
    item = {"type": "message", "role": "user", "content": [*files, audio]}
    messages = dialects.parse([item], format="openai-responses")
    claude = render(messages, format="anthropic").messages[0]["content"]
    assert [block["type"] for block in claude] == ["document", "text", "text"]  # it accepts no other files
    chat = render(messages, format="openai").messages[0]["content"]
    assert [block["type"] for block in chat] == ["file", "file", "input_audio"]
    assert chat[2] == audio


def test_instructions_and_tools_are_translated_for_responses() -> None:
    system = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    tools = [
        {"name": "read", "description": "Reads", "input_schema": {"type": "object"}},
        {"type": "function", "function": {"name": "write", "parameters": {"type": "object"}}},
        {"type": "custom", "name": "apply_patch", "format": {"type": "text"}},
        {"type": "web_search"},
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    messages = dialects.parse([user("x")], format="openai-responses")
    prompt = render(messages, format="openai-responses", system=system, tools=tools)
    assert prompt.system == "One.\nTwo."
    assert [tool.get("name", tool["type"]) for tool in prompt.tools or []] == [
        "read", "write", "apply_patch", "web_search",
    ]  # fmt: skip
    assert (prompt.tools or [])[2:] == tools[2:4]
    for format in ("openai", "anthropic"):
        there = render(messages, format=format, tools=prompt.tools).tools or []
        assert "apply_patch" in json.dumps(there)
        back = render(messages, format="openai-responses", tools=there).tools or []
        assert [tool.get("name") for tool in back][:3] == ["read", "write", "apply_patch"]


class TestReasoning:
    """OpenAI's reasoning items depend on the items after them, and those on the reasoning."""

    def test_without_encrypted_content_it_is_dropped_with_the_ids_that_need_it(self) -> None:
        items = [user("x"), {**RESPONSES[2], "encrypted_content": None}, *RESPONSES[3:8]]
        shown = render(dialects.parse(items, format="openai-responses"), format="openai-responses").messages
        assert [item.get("type") for item in shown[1:]] == [item["type"] for item in items[2:]]
        assert ["id" in item for item in shown[1:4]] == [False, False, False]
        assert shown[1]["phase"] == "commentary"
        assert provider_faults(shown, "openai-responses") == []

    def test_at_the_end_it_is_dropped(self) -> None:
        items = [user("x"), RESPONSES[2]]
        shown = render(dialects.parse(items, format="openai-responses"), format="openai-responses").messages
        assert shown == [user("x")]

    def test_a_cut_never_separates_it_from_its_response(self) -> None:
        messages = dialects.parse(RESPONSES, format="openai-responses")
        assert safe_cuts(messages) == {0, 1, 2, 8, 9, 10}


def test_parallel_results_become_one_user_message_for_anthropic() -> None:
    prompt = render(dialects.parse(OPENAI, format="openai"), format="anthropic")
    assert [block["text"] for block in prompt.system] == ["You are a careful engineer.", "Be brief."]
    kinds = [[block["type"] for block in m["content"]] for m in prompt.messages[1:3]]
    assert kinds == [["tool_use", "tool_use"], ["tool_result", "tool_result"]]


def test_images_errors_and_thinking_are_translated_for_openai() -> None:
    messages = render(dialects.parse(ANTHROPIC, format="anthropic"), format="openai").messages
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "user", "assistant", "user"]
    assert "thinking" not in json.dumps(messages[1])
    assert json.loads(messages[1]["tool_calls"][0]["function"]["arguments"]) == {
        "file_path": "a.py",
        "n": 1.5,
    }
    assert messages[3]["content"].startswith("Error: no such file")
    assert {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}} in messages[4][
        "content"
    ]
    assert "And now?" in json.dumps(messages[4])


def test_an_image_is_translated_for_anthropic() -> None:
    messages = render(dialects.parse(OPENAI, format="openai"), format="anthropic").messages
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    assert {"type": "image", "source": source} in messages[0]["content"]


def test_a_file_is_translated_from_responses() -> None:
    name, data = "plan.pdf", "data:application/pdf;base64,QQ=="
    content = [{"type": "input_file", "filename": name, "file_data": data}]
    messages = dialects.parse([{"role": "user", "content": content}], format="openai-responses")
    [chat] = render(messages, format="openai").messages
    assert chat["content"] == [{"type": "file", "file": {"filename": name, "file_data": data}}]
    [anthropic] = render(messages, format="anthropic").messages
    source = {"type": "base64", "media_type": "application/pdf", "data": "QQ=="}
    assert anthropic["content"] == [{"type": "document", "source": source}]


def test_an_approval_is_dropped_if_its_request_is_not_in_the_prompt() -> None:
    call = {"name": "deploy", "arguments": "{}", "server_label": "ci"}
    request = {"type": "mcp_approval_request", "id": "mcpr_1", **call}
    approval = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    for items, kept in (([request, approval], [request, approval]), ([approval], [])):
        messages = dialects.parse([user("Deploy."), *items], format="openai-responses")
        assert render(messages, format="openai-responses").messages[1:] == kept


def test_ids_that_anthropic_rejects_are_always_mapped_in_the_same_way() -> None:
    items = [user("x"), call("functions.read:0", "read"), result("functions.read:0", "y")]
    first = render(dialects.parse(items, format="openai"), format="anthropic").messages
    assert first == render(dialects.parse(items, format="openai"), format="anthropic").messages
    assert first[1]["content"][0]["id"] == first[2]["content"][0]["tool_use_id"]
    assert faults(first, "anthropic") == []


@pytest.mark.parametrize("arguments", ["", "not json", "[1, 2]", "null", '"text"', "{'a': 1}", '{"a": NaN}'])
def test_arguments_that_are_not_an_object_become_one(arguments: str) -> None:
    broken = call("c1", "run")
    broken["tool_calls"][0]["function"]["arguments"] = arguments
    for format in ("anthropic", "openai"):
        prompt = render(
            dialects.parse([user("x"), broken, result("c1", "y")], format="openai"), format=format
        )
        assert validate(prompt.messages, format) == ()
        assert faults(prompt.messages, format) == []


def test_tool_definitions_are_translated_both_ways() -> None:
    anthropic_tools = [
        {"name": "read", "description": "Reads", "input_schema": {"type": "object", "properties": {}}}
    ]
    openai_tools = [
        {
            "type": "function",
            "function": {
                "name": "read",
                "description": "Reads",
                "parameters": {"type": "object", "properties": {}},
            },
        }
    ]
    messages = dialects.parse([user("x")], format="openai")
    assert render(messages, format="openai", tools=anthropic_tools).tools == openai_tools
    assert render(messages, format="anthropic", tools=openai_tools).tools == anthropic_tools
    assert render(messages, format="openai", tools=openai_tools).tools == openai_tools
    assert (
        render(messages, format="openai", tools=[{"type": "web_search_20250305", "name": "w"}]).tools is None
    )


def test_a_tool_without_a_schema_is_not_lost() -> None:
    """It has no arguments. Anthropic's tools that the provider runs have no schema either, but a type."""
    tools = [{"name": "stop", "description": "Stops"}, {"type": "web_search_20250305", "name": "w"}]
    messages = dialects.parse([user("x")], format="anthropic")
    function = {
        "name": "stop",
        "description": "Stops",
        "parameters": {"type": "object", "properties": {}},
    }
    for format, expected in [
        ("openai", {"type": "function", "function": function}),
        ("openai-responses", {"type": "function", "strict": False, **function}),
    ]:
        assert render(messages, format=format, tools=tools).tools == [expected]


def test_unknown_fields_are_not_sent_to_openai() -> None:
    items = [{**user("x"), "_id": 7, "timestamp": "now"}, {**assistant("y"), "extra": {}}]
    messages = render(dialects.parse(items, format="openai"), format="openai").messages
    assert messages == [user("x"), assistant("y")]


def test_response_fields_are_not_sent_to_anthropic() -> None:
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "y"}]}
    item |= {"usage": {"input_tokens": 1}, "stop_reason": "end_turn", "model": "m"}
    items = [user("x"), item]
    messages = render(dialects.parse(items, format="anthropic"), format="anthropic").messages
    assert messages[1] == {"role": "assistant", "content": [{"type": "text", "text": "y"}]}


@pytest.mark.parametrize(
    "items",
    [
        [],
        [None],
        ["hello", 7, None, [], {}],
        [{"role": "user"}],
        [{"role": "user", "content": None}],
        [{"role": "assistant", "content": None, "tool_calls": [None, "x", {}]}],
        [{"role": "tool", "content": {"a": 1}}],
        [{"role": ["user"], "content": "x"}],
        [{"role": 7, "content": [None, "x", {}, {"type": "text"}, {"type": "tool_use"}]}],
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "a b", "name": "", "input": "x"}]}],
        [{"role": "user", "content": ""}, assistant(""), user("  ")],
        [{"role": "function", "name": "f", "content": "x"}],
        [
            user("x"),
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        ],
        [assistant("I begin.")],
    ],
)
def test_any_json_is_rendered_as_a_valid_prompt(items: list[Any], subtests: pytest.Subtests) -> None:
    for source, target in product(SAMPLES, repeat=2):
        with subtests.test(source=source, target=target):
            messages = render(dialects.parse(items, format=source), format=target).messages
            assert faults(messages, target) == []
            if messages and target == "openai-responses":
                assert provider_faults(messages, target) == []
            assert validate(messages, target) == ()


def test_parsed_messages_have_positions_turns_and_parts() -> None:
    messages = dialects.parse(ANTHROPIC, format="anthropic", start_position=10, turn=3)
    assert [m.position for m in messages] == [10, 11, 12, 13, 14]
    assert {m.turn for m in messages} == {3}
    assert [m.role for m in messages] == [Role.USER, Role.ASSISTANT, Role.USER, Role.ASSISTANT, Role.USER]
    assert [c.call_id for c in messages[1].tool_calls] == ["toolu_1", "toolu_2"]
    first, second = messages[2].tool_results
    assert (first.is_error, second.is_error) == (None, True)
    assert second.media_tokens > 0
    assert isinstance(messages[1].parts[3], ToolCall)
    assert isinstance(messages[2].parts[0], ToolResult)


def test_an_unknown_dialect_is_named_in_the_error() -> None:
    with pytest.raises(FormatError, match="cohere"):
        dialects.parse([], format="cohere")


def test_capabilities_depend_on_the_model() -> None:
    assert capabilities_of("some-model") == Capabilities()
    assert capabilities_of("gpt-5") == Capabilities(reasoning_field=False)
    assert capabilities_of("claude-opus-4-5-20251101").prefill
    assert not capabilities_of("claude-sonnet-4-6").prefill
    assert capabilities_of("anthropic/claude-opus-5-5").bound_thinking
    assert not capabilities_of("claude-3-5-sonnet-20241022").bound_thinking
