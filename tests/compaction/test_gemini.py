"""Gemini's contents: calls without ids, signatures, responses of functions, instructions and tools."""

from __future__ import annotations

import time
from itertools import chain
from typing import Any

import pytest

from compaction import dialects
from compaction.capabilities import Capabilities, capabilities_of
from compaction.continuation import Continuation
from compaction.rendering import render
from compaction.validation import validate
from compaction.view import apply
from compaction.view.entries import with_text
from tests.compaction.builders import assistant, call, parse, planned, result, tool_loop, user
from tests.compaction.gemini_checks import faults
from tests.compaction.test_odd_histories import served

JSON = dict[str, Any]
GEMINI_3 = capabilities_of("gemini-3-pro-preview")


def said(text: str, role: str = "user") -> JSON:
    return {"role": role, "parts": [{"text": text}]}


def called(*names: str, signature: str = "", **fields: Any) -> JSON:
    parts: list[JSON] = [{"functionCall": {"name": name, "args": {}, **fields}} for name in names]
    if signature:
        parts[0]["thoughtSignature"] = signature
    return {"role": "model", "parts": parts}


def responded(*pairs: tuple[str, JSON]) -> JSON:
    parts = [{"functionResponse": {"name": name, "response": response}} for name, response in pairs]
    return {"role": "user", "parts": parts}


def test_responses_belong_to_calls_by_function_and_order_whatever_ids_the_client_adds() -> None:
    items = [
        said("Read both."),
        called("read", "list", "read"),
        responded(("list", {"output": "ls"}), ("read", {"output": "one"}), ("read", {"error": "none"})),
    ]
    items[2]["parts"][1]["functionResponse"]["id"] = "read_1795"
    messages = dialects.parse(items, format="gemini")
    assert validate(items, "gemini") == ()
    results = {part.call_id: part for part in messages[2].tool_results}
    assert [results[each.call_id].text for each in messages[1].tool_calls] == ["one", "ls", "none"]
    assert [each.is_error for each in messages[2].tool_results] == [None, None, True]
    assert Continuation().after(messages, "gemini") == Continuation()


def test_streamed_parts_that_an_sdk_keeps_as_contents_are_answered_together() -> None:
    pushed = [said("x"), called("f"), called("f"), responded(("f", {"output": "1"}), ("f", {"output": "2"}))]
    shown = render(dialects.parse(pushed, format="gemini"), format="gemini").messages
    assert list(faults(shown)) == []
    assert shown == [pushed[0], called("f", "f"), pushed[3]]
    pushed.insert(2, said("And another.", "model"))
    shown = render(dialects.parse(pushed, format="gemini"), format="gemini").messages
    assert list(faults(shown)) == []
    assert [len(item["parts"]) for item in shown] == [1, 3, 2]
    loop = parse([user("x"), call("a", "f"), assistant("And another."), call("a", "f")])
    assert validate(render(loop, format="gemini").messages, "gemini") == ()


@pytest.mark.parametrize(
    ("response", "edited"),
    [
        ({"output": "long"}, {"output": "short"}),
        ({"error": "long"}, {"error": "short"}),
        ({"result": [1, 2]}, {"result": "short"}),
        ({"status": 1, "text": "long"}, {"output": "short"}),
        ({}, {"output": "short"}),
    ],
)
def test_an_edited_response_keeps_its_function_and_form(response: JSON, edited: JSON) -> None:
    [message] = dialects.parse([responded(("f", response))], format="gemini")
    part = with_text(message.parts[0], "short")
    made = render([*parse([]), *dialects.parse([said("x"), called("f")], format="gemini")], format="gemini")
    assert made.messages[1] == called("f")
    [item] = dialects.get_dialect("gemini").render_message(
        type(message)(**{**_fields(message), "parts": (part,), "patched": True})
    )
    assert item == responded(("f", edited))


def _fields(message: Any) -> JSON:
    return {name: getattr(message, name) for name in message.__dataclass_fields__}


class TestSignatures:
    """Gemini 3 requires a signature for the first call of each step of the current turn."""

    def test_calls_of_other_models_get_one_that_is_accepted(self) -> None:
        old = [user("Old"), call("a", "f"), result("a", "x"), assistant("Done.")]
        loop = parse([*old, *tool_loop(3, parallel=2)[1:]])
        shown = render(loop, format="gemini", capabilities=GEMINI_3).messages
        assert list(faults(shown, signatures=True)) == []
        signed = [part.get("thoughtSignature") for item in shown for part in item["parts"]]
        assert signed.count("skip_thought_signature_validator") == 4
        longer = render(
            [*loop, *parse([assistant("Done."), user("Go on.")])], format="gemini", capabilities=GEMINI_3
        )
        assert longer.messages[: len(shown)] == shown
        assert "thoughtSignature" not in str(render(loop, format="gemini").messages)
        assert [each.rule for each in validate(render(loop, format="gemini").messages, "gemini")] == []

    def test_a_missing_one_is_reported_for_the_current_turn_only(self) -> None:
        items = [said("x"), called("f"), responded(("f", {})), said("Done.", "model"), said("y")]
        items += [
            called("f", "g"),
            responded(("f", {}), ("g", {})),
            called("f", signature="c2ln"),
            responded(("f", {})),
        ]
        found = validate(items, "gemini", capabilities=GEMINI_3)
        assert [(each.rule, each.position) for each in found] == [("G4", 5)]
        assert validate(items, "gemini", capabilities=capabilities_of("gemini-2.5-pro")) == ()

    def test_a_call_needs_its_own_also_in_a_prompt_that_is_joined_from_stored_bytes(self) -> None:
        """Gemini 2.5 signs the first part of an answer, which may be a text."""
        signed, other = called("f", "g", signature="c2ln")["parts"]
        for parts in [signed, other], [other, signed], [{"text": "Done.", "thoughtSignature": "c2ln"}, other]:
            names = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
            items = [said("x"), {"role": "model", "parts": parts}, responded(*((name, {}) for name in names))]
            shown = served(items, "gemini", "gemini", GEMINI_3)
            assert list(faults(shown, signatures=True)) == []
            assert (shown == items) is (parts[0] is signed)

    def test_compactions_keep_them(self) -> None:
        items = [said("Fix it.")]
        for step in range(30):
            items += [called("read", signature=f"c2ln{step}")]
            items += [responded(("read", {"output": f"name_{step} = value\n" * 80}))]
        view = planned(apply((), parse(items, "gemini")), 4_000).view
        shown = render(view.messages, format="gemini", capabilities=GEMINI_3).messages
        assert list(faults(shown, signatures=True)) == []
        assert len(shown) < len(items)
        assert "skip_thought" not in str(shown)
        assert shown[-2:] == items[-2:]


@pytest.mark.slow
def test_many_calls_of_one_function_are_paired_in_linear_time() -> None:
    """All have the same id, which is made unique if any pair must be repaired."""
    steps = [[called("read"), responded(("read", {"output": f"{step}"}))] for step in range(6_000)]
    items = [said("Read."), responded(("list", {"output": "a"})), *chain.from_iterable(steps)]
    messages = parse(items, "gemini")
    started = time.process_time()
    shown = render(messages, format="gemini").messages
    assert time.process_time() - started < 2
    assert shown[2:] == items[2:]


def test_instructions_and_tools_are_translated() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = [
        {"functionDeclarations": [{"name": "read", "parameters": {"type": "OBJECT", "properties": {}}}]},
        {"name": "write", "description": "Writes", "input_schema": schema},
        {"type": "function", "function": {"name": "grep", "parameters": schema}},
        {"type": "web_search_20250305", "name": "web_search"},
        {"googleSearch": {}},
    ]
    system = {"role": "user", "parts": [{"text": "Be brief."}]}
    messages = dialects.parse([said("x")], format="gemini")
    prompt = render(messages, format="gemini", system=system, tools=tools)
    assert prompt.system == system
    declared, search = prompt.tools or []
    assert [each["name"] for each in declared["functionDeclarations"]] == ["read", "write", "grep"]
    assert declared["functionDeclarations"][1]["parametersJsonSchema"] == schema
    assert search == {"googleSearch": {}}
    for format, texts in (("anthropic", "Be brief."), ("openai", None), ("openai-responses", "Be brief.")):
        there = render(messages, format=format, system=system, tools=prompt.tools)
        assert there.system == texts
        assert "Be brief." in str(there.to_json())
        assert [each["name"] for each in map(_function, there.tools or [])] == ["read", "write", "grep"]
        back = render(messages, format="gemini", system=there.system, tools=there.tools)
        [again] = back.tools or []
        assert [each["name"] for each in again["functionDeclarations"]] == ["read", "write", "grep"]
    assert render(messages, format="gemini", system="Be brief.").system == {"parts": [{"text": "Be brief."}]}


def _function(tool: JSON) -> JSON:
    function: JSON = tool.get("function", tool)
    return function


def test_signatures_are_required_from_gemini_3_on() -> None:
    latest = "gemini-pro-latest", "~google/gemini-flash-lite-latest"
    for model in ("gemini-3-pro-preview", "models/gemini-3.1-flash", "google/gemini-12-pro", *latest):
        assert capabilities_of(model) == Capabilities(thought_signatures=True)
    for model in ("gemini-2.5-pro", "gemini-2.5-flash-latest", "gemini-pro", "my-gemini-3"):
        assert not capabilities_of(model).thought_signatures
