"""Invalid histories that occur in practice: the provider accepts every prompt served from them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from compaction import dialects
from compaction.capabilities import Capabilities, capabilities_of
from compaction.continuation import Continuation
from compaction.view import VERBATIM
from sessions.store.bodies import json_bytes
from sessions.store.prompt_bytes import PromptMessages, RequestParts, manifest_entry, request_fields
from tests.compaction.providers import faults
from tests.plugins.examples import examples

ids = st.sampled_from(["", "a", "a", "b", "é", "call 1", "x" * 60])
texts = st.sampled_from(["", " ", "words", "words \n", "\n"])
arguments = st.sampled_from(["{}", '{"path": "a.py"}', "", "[]", "no json", '{"a":' * 300 + "1" + "}" * 300])
parts = st.lists(st.builds(lambda text: {"type": "text", "text": text}, texts), max_size=2)
extras = st.dictionaries(
    st.sampled_from(
        [
            *("audio", "annotations", "refusal", "function_call", "tool_calls"),
            *("reasoning_content", "thinking_blocks"),
        ]
    ),
    st.none(),
    max_size=2,
)


def call(id: str, arguments: str, name: str = "read") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": "c2ln"}


names = st.sampled_from(["read", "", "read" * 60])
calls = st.lists(st.builds(call, ids, arguments, names), max_size=3)
openai_messages = st.one_of(
    st.builds(lambda c: {"role": "user", "content": c}, texts | parts),
    st.builds(lambda c: {"role": "system", "content": c}, texts | parts),
    st.builds(lambda c, more: {**more, "role": "assistant", "content": c}, texts | parts, extras),
    st.builds(
        lambda c, t, r: {"role": "assistant", "content": c, "tool_calls": t, "reasoning_content": r},
        st.none() | texts | parts,
        calls,
        st.none() | texts,
    ),
    st.builds(
        lambda c, t, b: {"role": "assistant", "content": c, "tool_calls": t, "thinking_blocks": b},
        st.none() | texts | parts,
        calls,
        st.none() | st.lists(st.builds(thinking, texts), max_size=2),
    ),
    st.builds(
        lambda c, a: {"role": "assistant", "content": c, "function_call": {"name": "f", "arguments": a}},
        st.none() | texts,
        arguments,
    ),
    st.builds(lambda c: {"role": "function", "name": "f", "content": c}, st.none() | texts),
    st.builds(tool, ids, st.none() | texts | parts),
    st.builds(tool, ids, texts),
)
blocks = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, texts),
    st.builds(lambda id, name: {"type": "tool_use", "id": id, "name": name, "input": {}}, ids, names),
    st.builds(lambda id, text: {"type": "tool_result", "tool_use_id": id, "content": text}, ids, texts),
    st.builds(lambda id: {"type": "tool_result", "tool_use_id": id, "content": []}, ids),
    st.just({"type": "text", "text": "cached", "cache_control": {"type": "ephemeral"}}),
)
anthropic_messages = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "assistant"]),
    texts | st.lists(blocks, max_size=4),
)
item_ids = st.sampled_from([None, "", "msg_1", "rs_1", "fc_1", "msg_" + "x" * 80])
responses_items = st.one_of(
    st.builds(
        lambda role, content, more: {**more, "role": role, "content": content},
        st.sampled_from(["user", "assistant", "system", "developer"]),
        texts
        | st.lists(
            st.builds(
                lambda kind, text: {"type": kind, "text": text},
                st.sampled_from(["input_text", "output_text"]),
                texts,
            ),
            max_size=2,
        ),
        st.sampled_from([{}, {"type": "message"}, {"phase": "commentary"}, {"_private": 1}, {"id": "m"}]),
    ),
    st.builds(
        lambda id, content, more: {"type": "reasoning", "id": id, "encrypted_content": content, **more},
        item_ids,
        st.sampled_from([None, "", "opaque"]),
        st.sampled_from([{"summary": []}, {}, {"summary": [], "content": [{"type": "reasoning_text"}]}]),
    ),
    st.builds(
        lambda id, call, a, name: {
            "type": "function_call",
            "id": id,
            "call_id": call,
            "name": name,
            "arguments": a,
        },
        item_ids,
        ids,
        arguments,
        names,
    ),
    st.builds(lambda call: {"type": "custom_tool_call", "call_id": call, "name": "p", "input": "x"}, ids),
    st.builds(lambda call: {"type": "local_shell_call", "call_id": call, "action": {}}, ids),
    st.builds(
        lambda kind, call, output: {"type": f"{kind}_output", "call_id": call, "output": output},
        st.sampled_from(["function_call", "custom_tool_call", "local_shell_call"]),
        ids,
        texts | st.just([{"type": "input_text", "text": "x"}]),
    ),
    st.just({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
    st.just({"type": "compaction", "encrypted_content": "opaque"}),
)
histories = st.lists(openai_messages | anthropic_messages | responses_items, min_size=1, max_size=12)
some_histories = st.one_of(
    st.lists(openai_messages, min_size=1, max_size=12),
    st.lists(anthropic_messages, min_size=1, max_size=12),
    st.lists(responses_items, min_size=1, max_size=12),
    histories,
)
formats = st.sampled_from(["openai", "anthropic", "openai-responses"])
quick = settings(
    max_examples=examples(80),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
NEWEST = Capabilities(prefill=False)


def served(items: list[Any], stored: str, format: str, capabilities: Capabilities) -> list[Any]:
    """Return the messages as the store serves them: joined bytes if possible, else rendered."""
    messages = dialects.parse_mixed(items, default=stored)
    state = Continuation().after(messages, stored)
    pieces = [json.dumps(item, ensure_ascii=bool(at % 2)).encode() for at, item in enumerate(items)]
    manifest = [manifest_entry(at, at, message.role, VERBATIM, 1, 1) for at, message in enumerate(messages)]
    middle = len(pieces) // 2
    prompt = PromptMessages()
    for part in slice(middle), slice(middle, None):
        prompt = prompt.append(PromptMessages(pieces=pieces[part], manifest=manifest[part]))
    parts = RequestParts(
        stored_format=stored,
        format=format,
        system=None,
        tools=None,
        continuation=state,
        capabilities=capabilities,
    )
    shown: list[Any] = json.loads(json_bytes(request_fields(prompt, parts)["messages"]))
    return shown


@quick
@given(some_histories, formats, formats, st.booleans())
@example(
    [
        {"type": "function_call", "call_id": "é", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "é", "output": "1"},
        {"role": "user", "content": "Again."},
        {"type": "function_call", "call_id": "é", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "é", "output": "2"},
        {"role": "user", "content": "Thanks."},
    ],
    "openai-responses",
    "openai-responses",
    True,
)
@example([tool("a", "x"), {"role": "user", "content": []}], "openai", "openai", True)
@example(
    [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "a", "content": ""}]},
    ],
    "openai",
    "openai",
    False,
)
def test_any_history_is_served_as_the_provider_accepts_it(
    items: list[Any], stored: str, format: str, prefill: bool
) -> None:
    known = [item for item in items if dialects.detect(item, stored) is not None]
    shown = served(known, stored, format, Capabilities(prefill=prefill))
    if shown:
        assert faults(shown, format) == []
    else:
        assert not any(_says_something(item) for item in known)


def _says_something(item: dict[str, Any]) -> bool:
    return (
        isinstance(item.get("content"), str) and bool(item["content"].strip()) and item.get("role") == "user"
    )


def both(items: list[Any], stored: str = "openai") -> tuple[list[Any], list[Any]]:
    return (
        served(items, stored, "openai", Capabilities()),
        served(items, stored, "anthropic", Capabilities()),
    )


def test_an_empty_message_between_a_call_and_its_result_is_dropped() -> None:
    items = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call("a", "{}")]},
        {"role": "user", "content": []},
        tool("a", "done"),
    ]
    shown, _ = both(items)
    assert shown == [items[0], items[1], items[3]]


def test_a_legacy_function_call_is_answered() -> None:
    items = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "done"},
    ]
    for format, shown in zip(("openai", "anthropic"), both(items), strict=True):
        assert faults(shown, format) == []
        assert "done" in json.dumps(shown[-1])


@pytest.mark.parametrize("apart", [False, True])
def test_parallel_calls_with_the_same_id_keep_their_results(apart: bool) -> None:
    pair = [call("a", '{"n": 1}'), call("a", '{"n": 2}')]
    sent = [pair[:1], pair[1:]] if apart else [pair]
    items = [
        {"role": "user", "content": "go"},
        *({"role": "assistant", "content": None, "tool_calls": each} for each in sent),
        tool("a", "first"),
        tool("a", "second"),
    ]
    shown, other = both(items)
    wanted = [
        (made["id"], json.loads(made["function"]["arguments"])["n"])
        for item in shown
        for made in item.get("tool_calls") or ()
    ]
    results = {item["tool_call_id"]: item["content"] for item in shown if item["role"] == "tool"}
    assert [(results[id], n) for id, n in wanted] == [("first", 1), ("second", 2)]
    uses = [b for m in other if isinstance(m["content"], list) for b in m["content"] if "input" in b]
    answers = {b["tool_use_id"]: b["content"] for m in other for b in m["content"] if "tool_use_id" in b}
    assert [(answers[use["id"]], use["input"]["n"]) for use in uses] == [("first", 1), ("second", 2)]


def test_reasoning_is_dropped_for_openai_and_kept_for_others() -> None:
    items = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "done", "reasoning_content": "because"},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": "done", "thinking_blocks": [thinking("because")]},
    ]
    for model, kept in (("gpt-5", False), ("openai/o4-mini", False), ("deepseek-v4", True), ("", True)):
        shown = served(items, "openai", "openai", capabilities_of(model))
        assert ("reasoning_content" in shown[1]) is kept, model
        assert ("thinking_blocks" in shown[3]) is kept, model


def test_a_trailing_assistant_message_has_no_trailing_whitespace() -> None:
    for content in ("done \n", [{"type": "text", "text": "done\t"}]):
        items = [{"role": "user", "content": "go "}, {"role": "assistant", "content": content}]
        shown = served(items, "anthropic", "anthropic", Capabilities())
        assert faults(shown, "anthropic") == []
        assert shown[0] == items[0]


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_open_calls_at_the_end_are_reported(format: str) -> None:
    items = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call("a", "{}"), call("b", "{}")]},
    ]
    shown = served(items, "openai", format, Capabilities())
    assert dialects.get_dialect(format).open_calls(shown) == ["a", "b"]
    closed = served([*items, tool("a", "1"), tool("b", "2")], "openai", format, Capabilities())
    assert dialects.get_dialect(format).open_calls(closed) == []
