"""For each provider rule: validation reports a violation, and rendering repairs it."""

from typing import Any

import pytest

from compaction import dialects
from compaction.capabilities import Capabilities
from compaction.invariants.pairs import safe_cuts
from compaction.messages import Role
from compaction.rendering import render
from compaction.validation import validate
from tests.compaction.builders import assistant, call, calls, faults, parse, result, system, user


def use(*ids: str) -> dict[str, Any]:
    blocks = [{"type": "tool_use", "id": i, "name": "run", "input": {}} for i in ids]
    return {"role": "assistant", "content": blocks}


def results(*ids: str, text: str | None = None) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": i, "content": f"r {i}"} for i in ids
    ]
    return {"role": "user", "content": blocks + ([{"type": "text", "text": text}] if text else [])}


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
MARKED = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
SERVER = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}

#: rule, position, format, messages, capabilities
BROKEN: list[tuple[str, int, str, list[Any], Capabilities]] = [
    ("A1", 1, "anthropic", [user("x"), use("a"), user("y")], Capabilities()),
    ("A1", 1, "anthropic", [user("x"), results("a")], Capabilities()),
    ("A1", 1, "anthropic", [user("x"), use("a", "b"), results("a")], Capabilities()),
    (
        "A2",
        2,
        "anthropic",
        [user("x"), use("a"), {"role": "user", "content": [MARKED, *results("a")["content"]]}],
        Capabilities(),
    ),
    ("A3", 3, "anthropic", [user("x"), use("a"), results("a"), use("a"), results("a")], Capabilities()),
    ("A3", 2, "anthropic", [user("x"), use("a"), results("a", "a")], Capabilities()),
    (
        "A4",
        1,
        "anthropic",
        [user("x"), {"role": "assistant", "content": [SERVER]}, user("y")],
        Capabilities(),
    ),
    ("A5", 0, "anthropic", [assistant("x"), user("y")], Capabilities()),
    ("A7", 1, "anthropic", [user("x"), assistant("y")], Capabilities(prefill=False)),
    ("A8", 0, "anthropic", [user(""), user("y")], Capabilities()),
    (
        "A8",
        0,
        "anthropic",
        [{"role": "user", "content": [{"type": "text", "text": " "}]}, user("y")],
        Capabilities(),
    ),
    ("A9", 1, "anthropic", [user("x"), system(), user("y")], Capabilities()),
    (
        "A10",
        1,
        "anthropic",
        [user("x"), {"role": "assistant", "content": [{**THOUGHT, "signature": ""}, MARKED]}],
        Capabilities(),
    ),
    ("A12", 4, "anthropic", [{"role": "user", "content": [MARKED]}] * 5, Capabilities()),
    ("C1", 1, "openai", [user("x"), call("a", "run"), user("y"), result("a", "z")], Capabilities()),
    ("C1", 1, "openai", [user("x"), calls(("a", "r", {}), ("b", "r", {})), result("a", "z")], Capabilities()),
    ("C2", 1, "openai", [user("x"), result("a", "z")], Capabilities()),
    ("C3", 1, "openai", [user("x"), {"role": "assistant", "content": None}], Capabilities()),
    ("C4", 1, "openai", [user("x"), call("a", "run"), result("a", "z")], Capabilities()),
    ("C5", 0, "openai", [{**user("x"), "_private": 1}], Capabilities()),
]
BROKEN[-2][3][1]["tool_calls"][0]["function"]["arguments"] = "{broken"


@pytest.mark.parametrize(("rule", "position", "format", "items", "capabilities"), BROKEN)
def test_a_violation_is_reported_and_repaired(
    rule: str, position: int, format: str, items: list[Any], capabilities: Capabilities
) -> None:
    found = validate(items, format, capabilities=capabilities)
    assert (rule, position) in {(violation.rule, violation.position) for violation in found}
    served = render(dialects.parse(items, format=format), format=format, capabilities=capabilities).messages
    assert validate(served, format, capabilities=capabilities) == ()
    assert faults(served, format) == []


@pytest.mark.parametrize("format", ["anthropic", "openai", "openai-responses", "gemini"])
def test_parallel_calls_with_one_id_and_one_result_are_repaired(format: str) -> None:
    items = [user("x"), calls(("a", "f", {}), ("a", "g", {})), result("a", "y"), user("z")]
    served = render(dialects.parse(items, format="openai"), format=format).messages
    assert validate(served, format) == ()
    assert faults(served, format) == []


def test_bound_thinking_from_before_an_edit_is_reported() -> None:
    items = [user("x"), {"role": "assistant", "content": [THOUGHT, MARKED]}, user("y")]
    bound = Capabilities(bound_thinking=True)
    assert validate(items, "anthropic", capabilities=bound) == ()
    assert validate(items, "anthropic", edited=range(3)) == ()
    assert [v.rule for v in validate(items, "anthropic", capabilities=bound, edited=range(3))] == ["A11"]


def test_consecutive_assistant_messages_are_answered_together() -> None:
    items = [user("x"), use("a"), use("b"), results("a"), results("b", text="and")]
    assert validate(items, "anthropic") == ()
    assert render(dialects.parse(items, format="anthropic"), format="anthropic").messages == items


def test_an_open_call_may_be_last_if_the_model_supports_prefill() -> None:
    items = [user("x"), use("a")]
    assert validate(items, "anthropic") == ()
    closed = Capabilities(prefill=False)
    assert {v.rule for v in validate(items, "anthropic", capabilities=closed)} == {"A1", "A7"}
    served = render(
        dialects.parse(items, format="anthropic"), format="anthropic", capabilities=closed
    ).messages
    assert validate(served, "anthropic", capabilities=closed) == ()


def test_openai_accepts_repeated_ids_if_each_call_has_a_result() -> None:
    items = [
        user("x"),
        call("call_0", "a"),
        result("call_0", "1"),
        call("call_0", "b"),
        result("call_0", "2"),
    ]
    assert validate(items, "openai") == ()
    assert render(parse(items), format="openai").messages == items
    other = render(parse(items), format="anthropic").messages
    assert faults(other, "anthropic") == []
    assert [block["content"] for m in other[2::2] for block in m["content"]] == ["1", "2"]


def test_a_late_result_moves_to_its_call() -> None:
    items = [user("x"), call("a", "run"), user("wait"), result("a", "late")]
    served = render(parse(items), format="openai").messages
    assert [m["role"] for m in served] == ["user", "assistant", "tool", "user"]
    assert served[2]["content"] == "late"


def test_an_early_result_moves_to_its_call() -> None:
    items = [user("x"), result("a", "early"), call("a", "run"), user("y")]
    assert [m["role"] for m in render(parse(items), format="openai").messages] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]


def test_a_result_without_a_call_becomes_text() -> None:
    served = render(parse([user("x"), result("a", "the figure is 42"), user("y")]), format="openai").messages
    assert served[1]["role"] == "user"
    assert "the figure is 42" in served[1]["content"]


def test_a_missing_result_is_replaced_by_a_note() -> None:
    served = render(parse([user("x"), call("a", "run"), user("y")]), format="openai").messages
    assert served[2]["role"] == "tool"
    assert "No result" in served[2]["content"]


def test_a_second_result_is_dropped() -> None:
    items = [user("x"), call("a", "run"), result("a", "1"), result("a", "1"), user("y")]
    assert [m["role"] for m in render(parse(items), format="openai").messages] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]


def test_valid_messages_are_unchanged_by_a_repair_elsewhere() -> None:
    sound = [
        user("x"),
        calls(("a", "r", {}), ("b", "r", {})),
        result("a", "1"),
        result("b", "2"),
        user("more"),
    ]
    served = render(parse([*sound, call("c", "r"), user("end")]), format="openai").messages
    assert served[: len(sound)] == sound


def test_the_newest_breakpoints_are_kept() -> None:
    items = [{"role": "user", "content": [dict(MARKED, text=str(n))]} for n in range(7)]
    system_field = [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]
    assert places_of_breakpoints(items, system_field) == [4, 5, 6]
    items[5]["content"] *= 3  # more than there is room for, so that all of them are removed
    assert places_of_breakpoints(items, system_field) == [6]
    assert places_of_breakpoints(items[:3], system_field) == [0, 1, 2]
    assert places_of_breakpoints(items, system_field * 4) == []


def places_of_breakpoints(items: list[dict[str, Any]], system_field: list[dict[str, Any]]) -> list[int]:
    """Return the messages of the prompt that have cache breakpoints."""
    prompt = render(dialects.parse(items, format="anthropic"), format="anthropic", system=system_field)
    assert validate(prompt.messages, "anthropic", system=prompt.system) == ()
    return [n for n, m in enumerate(prompt.messages) if any("cache_control" in b for b in m["content"])]


def test_cuts_are_safe_only_between_closed_calls() -> None:
    items = [
        system(),
        user("x"),
        calls(("a", "r", {}), ("b", "r", {})),
        result("a", "1"),
        result("b", "2"),
        assistant("done"),
        call("c", "r"),
    ]
    assert safe_cuts(parse(items)) == {0, 1, 2, 5, 6, 7}
    late = [
        calls(("a", "r", {}), ("b", "r", {})),
        result("a", "1"),
        user("Wait."),
        result("b", "2"),
        user("x"),
    ]
    assert safe_cuts(parse(late)) == {0, 4, 5}


def test_an_unknown_role_becomes_the_user() -> None:
    assert dialects.parse([{"role": "robot", "content": "x"}], format="openai")[0].role is Role.USER
