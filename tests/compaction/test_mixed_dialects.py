"""Detection of dialects, and sessions whose messages are in several."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import dialects
from compaction.capabilities import Capabilities
from compaction.continuation import Continuation
from compaction.dialects import detect, detect_session
from compaction.messages import ToolCall, ToolResult
from compaction.planning.pipeline import PlanRequest, plan
from compaction.policy import PRESETS, Budget
from compaction.rendering import render
from compaction.validation import validate
from compaction.view import apply
from importers.base import ImportedSession
from importers.reading import log_sources
from importers.registry import recognize
from sessions.store import bodies
from sessions.store.prompt_bytes import RequestParts, messages_of_view, request_fields
from tests.compaction.builders import COUNTER, assistant, call, calls, faults, result, system, user
from tests.compaction.test_properties import (
    anthropic_messages,
    models,
    openai_messages,
    quick,
    responses_items,
    texts,
)

LONG = "call_" + "x" * 60

PLAIN = {"anthropic", "openai", "openai-responses"}
EVERY = {*PLAIN, "gemini"}

#: Message, the dialects that accept it, and the dialect of a new session that begins with it.
KNOWN: list[tuple[dict[str, Any], set[str], str | None]] = [
    (user("x"), PLAIN, None),
    (assistant("x"), PLAIN, None),
    ({"role": "user", "content": [{"type": "text", "text": "x"}]}, {"anthropic", "openai"}, None),
    ({"role": "user", "content": ""}, PLAIN, None),
    (system(), PLAIN, "openai"),
    ({"role": "user", "content": "x", "name": "ann"}, PLAIN, "openai"),
    ({"role": "assistant", "content": [{"type": "text", "text": "x"}]}, {"anthropic", "openai"}, "anthropic"),
    ({"role": "assistant", "content": None}, {"openai"}, "openai"),
    ({"role": "assistant", "content": "x", "refusal": None}, {"openai"}, "openai"),
    ({"role": "developer", "content": "x"}, {"openai", "openai-responses"}, "openai"),
    (
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "x"}]},
        {"openai-responses"},
        "openai-responses",
    ),
    (call("c", "f"), {"openai"}, "openai"),
    (result("c", "x"), {"openai"}, "openai"),
    ({"role": "function", "name": "f", "content": "x"}, {"openai"}, "openai"),
    (
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"openai"},
        "openai",
    ),
    ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}, {"openai"}, "openai"),
    (
        {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]},
        {"anthropic"},
        "anthropic",
    ),
    (
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"anthropic"},
        "anthropic",
    ),
    ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}, {"anthropic"}, "anthropic"),
    ({"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}, {"anthropic"}, "anthropic"),
    (
        {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"},
        {"anthropic"},
        "anthropic",
    ),
    ({"role": "user", "parts": [{"text": "x"}]}, {"gemini"}, "gemini"),
    ({"role": "model", "parts": [{"functionCall": {"name": "f"}}]}, {"gemini"}, "gemini"),
    ({"parts": [{"functionResponse": {"name": "f", "response": {}}}]}, {"gemini"}, "gemini"),
    *(
        (item, {"openai-responses"}, "openai-responses")
        for item in (
            {"type": "message", "role": "user", "content": "x"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
            {"role": "assistant", "content": "x", "phase": "commentary"},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "x"},
            {"type": "compaction", "encrypted_content": "x"},
        )
    ),
]


@pytest.mark.parametrize(("item", "accepted", "session"), KNOWN, ids=[str(row[0])[:70] for row in KNOWN])
def test_a_message_is_read_in_the_dialect_in_which_it_is_written(
    item: dict[str, Any], accepted: set[str], session: str | None
) -> None:
    for default in EVERY:
        expected = default if default in accepted else session or "anthropic"
        assert detect(item, default) == expected
        [message] = dialects.parse_mixed([item], default=default)
        assert message.format == expected
    assert detect_session([item]) == session


def test_a_certain_message_decides_against_a_likely_one() -> None:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
    assert detect_session([system(), user("x"), use]) == "anthropic"
    assert detect_session([user("x")], [{"name": "f", "input_schema": {}}]) == "anthropic"
    assert detect_session([user("x")], [{"type": "function", "function": {"name": "f"}}]) == "openai"
    for tool in ({"type": "function", "name": "f", "parameters": {}}, {"type": "custom", "name": "p"}):
        assert detect_session([user("x")], [{"type": "web_search"}, tool]) == "openai-responses"


def anthropic_call(id: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "f", "input": {}}]}


def anthropic_result(id: str, text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}


def gemini_call(name: str) -> dict[str, Any]:
    return {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]}


def gemini_result(name: str, text: str) -> dict[str, Any]:
    return {"parts": [{"functionResponse": {"name": name, "response": {"output": text}}}], "role": "user"}


def responses_call(id: str) -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc_{len(id)}", "call_id": id, "name": "f", "arguments": "{}"}


def responses_result(id: str, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id, "output": text}


@st.composite
def pairs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A call and its result, each in either dialect, perhaps with something between them."""
    id, text = draw(st.sampled_from(["a", "b", LONG, "x y"])), draw(texts)
    made = [draw(st.sampled_from([call(id, "f"), anthropic_call(id), responses_call(id)]))]
    made += draw(st.lists(openai_messages() | anthropic_messages() | responses_items(), max_size=1))
    results = [result(id, text), anthropic_result(id, text), responses_result(id, text)]
    return [*made, draw(st.sampled_from(results))]


# A message without content between a call and its result is still served as pushed, which OpenAI rejects.
spoken = st.one_of(openai_messages(), anthropic_messages(), responses_items()).filter(
    lambda item: item.get("content") != []
)
one = spoken.map(lambda item: [item])
mixed = st.lists(st.one_of(one, pairs()), max_size=12).map(
    lambda groups: [i for group in groups for i in group]
)
defaults = st.sampled_from([None, *sorted(EVERY)])


@pytest.mark.slow
@quick
@given(mixed, defaults, st.sampled_from(sorted(PRESETS)), st.integers(1, 4_000), models)
def test_a_mixed_session_is_valid_in_both_dialects(
    items: list[dict[str, Any]], default: str | None, policy: str, budget: int, model: Capabilities
) -> None:
    messages = dialects.parse_mixed(items, default=default, counter=COUNTER)
    limit = Budget(input_tokens=budget)
    request = PlanRequest(
        view=apply((), messages), policy=PRESETS[policy], counter=COUNTER, budget=limit, capabilities=model
    )
    raw = {position: json.dumps(item).encode() for position, item in enumerate(items)}
    for view in (request.view, plan(request).view):
        stored, after = messages_of_view(view, raw, default)
        for format in sorted(EVERY):
            shown = render(view.messages, format=format, capabilities=model).messages
            assert validate(shown, format, capabilities=model) == ()
            assert faults(shown, format) == []
            fields = request_fields(
                stored,
                RequestParts(
                    stored_format=default,
                    format=format,
                    system=None,
                    tools=None,
                    continuation=after,
                    capabilities=model,
                ),
            )
            served = _messages(fields)
            assert validate(served, format, capabilities=model) == ()
            assert faults(served, format) == []


def _messages(fields: dict[str, Any]) -> list[Any]:
    """Return the messages of a request as the JSON that is sent."""
    sent: list[Any] = bodies.json_value(bodies.json_bytes(fields["messages"]))
    return sent


@quick
@given(st.lists(st.sampled_from(sorted(EVERY)), min_size=1, max_size=12), defaults, st.data())
def test_each_message_is_exact_in_its_own_dialect(
    turns: list[str], default: str | None, data: st.DataObject
) -> None:
    items = [user("Begin.")]
    for number, format in enumerate(turns):
        id = f"c{number}"
        made = {
            "openai": [call(id, "f", n=number), {"content": "x", "role": "tool", "tool_call_id": id}],
            "anthropic": [anthropic_call(id), anthropic_result(id, "x")],
            "openai-responses": [{**responses_call(id), "id": f"fc_{number}"}, responses_result(id, "x")],
            "gemini": [gemini_call("f"), gemini_result("f", "x")],
        }
        items += made[format]
    messages = dialects.parse_mixed(items, default=default)
    assert [m.format for m in messages[1:]] == [format for format in turns for _ in range(2)]
    for format in sorted(EVERY):
        shown = render(messages, format=format).messages
        assert validate(shown, format) == ()
        assert len(shown) == len(items)
        for message, item in zip(messages, shown, strict=True):
            if message.format == format:
                assert json.dumps(item) == json.dumps(items[message.position])
        calls = [p for m in dialects.parse(shown, format=format) for p in m.parts]
        ids = [p.call_id for p in calls if isinstance(p, ToolCall | ToolResult)]
        assert ids[::2] == ids[1::2]
        if format != "gemini":
            own = [id for id, source in zip(ids[::2], turns, strict=True) if source != "gemini"]
            assert own == [f"c{number}" for number, source in enumerate(turns) if source != "gemini"]


@pytest.mark.parametrize("format", sorted(EVERY))
def test_complete_exchanges_in_one_dialect_can_be_served_from_their_bytes(format: str) -> None:
    pair = calls(("a", "f", {}), ("b", "f", {}))
    chat = [user("x"), pair, result("a", "y"), result("b", "z"), assistant("Done."), user("And now?")]
    items = render(dialects.parse(chat, format="openai"), format=format).messages
    if format == "openai-responses":
        items.insert(1, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"})
    messages = dialects.parse(items, format=format)
    called = next(index for index, message in enumerate(messages) if message.tool_calls)
    assert Continuation().after(messages[: called + 1], format).open_calls
    assert Continuation().after(messages, format) == Continuation()


@pytest.mark.parametrize(
    ("block", "is_sound"),
    [
        ({"type": "thinking", "thinking": "Hm.", "signature": "s"}, True),
        ({"type": "thinking", "thinking": "Hm."}, False),
        ({"type": "redacted_thinking", "data": "s"}, True),
        ({"type": "compaction", "content": "Summary."}, True),
        ({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}, False),
        ({"type": "container_upload", "file_id": "f"}, False),
        ({"type": "text", "text": " "}, False),
    ],
)
def test_blocks_that_may_need_repair_are_not_served_from_their_bytes(
    block: dict[str, Any], is_sound: bool
) -> None:
    answer = {"role": "assistant", "content": [block, {"type": "text", "text": "Done."}]}
    messages = dialects.parse([user("x"), answer, user("y")], format="anthropic")
    assert Continuation().after(messages, "anthropic").regular is is_sound


def test_a_message_of_another_dialect_cannot_be_served_from_its_bytes() -> None:
    read = dialects.parse_mixed([user("x"), call("c", "f"), result("c", "y")], default="anthropic")
    assert not Continuation().after(read, "anthropic").regular
    assert Continuation().after(read, "openai") == Continuation(
        regular=False
    )  # the first was read as Anthropic's
    read = dialects.parse_mixed([user("x"), call("c", "f"), result("c", "y")], default="openai")
    assert Continuation().after(read, "openai") == Continuation()


def test_an_undetected_session_is_regular_if_every_dialect_can_serve_its_bytes() -> None:
    sound = dialects.parse_mixed([user("x"), assistant("y")], default=None)
    assert Continuation().after(sound, None).regular
    unsound = dialects.parse_mixed([{**user("x"), "custom": 1}], default=None)
    assert Continuation().after(unsound, "anthropic").regular
    assert not Continuation().after(unsound, None).regular


@pytest.mark.trajectories
def test_detection_agrees_with_the_known_dialect_of_recorded_messages(trajectories: Any) -> None:
    checked = 0
    for source in log_sources([trajectories]):
        log = source.read()
        importer = recognize(log)
        for session in importer.read(log) if importer is not None else ():
            if not isinstance(session, ImportedSession):
                continue
            for message in (message for turn in session.turns for message in turn.messages):
                item = dict(message.body)
                assert detect(item, session.format) == session.format
                certain = {d.name for d in dialects.DIALECTS.values() if d.recognizes(item) == 3}
                assert certain <= {session.format}, item
                checked += 1
    assert checked > 20_000


@pytest.mark.parametrize("kind", ["computer_call", "local_shell_call", "function_call"])
def test_a_call_without_its_reasoning_only_keeps_a_new_id_that_is_required(kind: str) -> None:
    call = {"type": kind, "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}", "action": {}}
    items = [user("x"), {"type": "reasoning", "id": "rs_1", "summary": []}, call]
    items.append({"type": f"{kind}_output", "call_id": "c", "output": {"type": "computer_screenshot"}})
    rendered = render(dialects.parse(items, format="openai-responses"), format="openai-responses").messages
    sent = next(item for item in rendered if item.get("type") == kind)
    assert ("id" in sent) == (kind != "function_call")
    assert sent.get("id") != "fc_1"
