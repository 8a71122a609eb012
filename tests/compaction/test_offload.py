"""What is offloaded from the tail, and how much of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from compaction.messages import Message, ToolCall
from compaction.planning.pipeline import Plan
from compaction.policy import Policy
from compaction.view import apply
from tests.compaction.builders import (
    JSON,
    assistant,
    call,
    calls,
    lines,
    parse,
    planned,
    result,
    system,
    user,
)

#: In 1,000 tokens, a giant has 250. A prompt is compacted from 950 on, down to 400.
BUDGET = 1_000


def outputs(count: int, *, tokens: int, tool: str = "bash") -> list[JSON]:
    """Return a task and outputs of about this many tokens."""
    items = [user("Fix it.")]
    for n in range(count):
        items += [call(f"c{n}", tool), result(f"c{n}", lines(tokens // 15, word=f"v{n}_"))]
    return items


def offloaded(messages: tuple[Message, ...], **settings: object) -> Plan:
    """Offload from a prompt that is all tail."""
    policy = Policy.from_json({"steps": ("offload",), "tail_messages": 100, **settings})
    return planned(apply((), messages), BUDGET, policy)


def test_giants_are_offloaded_down_to_the_target() -> None:
    made = offloaded(parse(outputs(4, tokens=300)))
    assert [edit.position for edit in made.edits] == [2, 4, 6, 8]
    assert made.view.tokens <= made.record.target


def test_smaller_outputs_are_offloaded_only_until_the_prompt_fits() -> None:
    made = offloaded(parse(outputs(6, tokens=210)))
    assert len(made.edits) == 3
    assert made.record.target < made.view.tokens <= 0.95 * BUDGET


def test_short_outputs_stay_even_if_the_prompt_would_fit_without_them() -> None:
    assert offloaded(parse(outputs(9, tokens=105))).edits
    assert not offloaded(parse(outputs(14, tokens=60))).edits


@pytest.mark.parametrize("share", [0.7, 0.88])
def test_the_model_sees_each_new_output_beside_a_long_request(share: float) -> None:
    """Older messages are dropped instead. The request takes this share of the budget, and stays."""
    items = [system(), user("Look."), assistant("Yes."), user("Here is the log:\n" + lines(300))]
    budget, edits = int(parse(items)[-1].tokens / share), ()
    for turn in range(12):
        items += [call(f"c{turn}", "bash"), result(f"c{turn}", lines(15, word=f"v{turn}_"))]
        messages = parse(items)
        view = apply(edits, messages)
        if view.tokens >= 0.95 * budget:
            made = planned(view, budget)
            edits, view = (*edits, *made.edits), made.view
        assert view.tokens <= budget
        assert view.messages[-1] == messages[-1]


def test_a_new_output_that_does_not_fit_is_offloaded() -> None:
    """Neither of the two is a giant, but they do not fit together."""
    items = [user("Fix it. " + lines(40)), calls(("c1", "bash", {}), ("c2", "bash", {}))]
    items += [result(f"c{n}", lines(16, word=f"v{n}_")) for n in (1, 2)]
    made = offloaded(parse(items))
    assert made.edits
    assert made.view.tokens <= BUDGET


def test_new_outputs_beside_long_parallel_calls_are_offloaded_instead_of_removed() -> None:
    """Each call is a message of the newest response, so no later step drops the long one alone."""
    items: list[JSON] = [user("Look. " + lines(24))]
    for name, length in (("a", 14), ("b", 1)):
        arguments = json.dumps({"command": lines(length)})
        items.append({"type": "function_call", "call_id": name, "name": "bash", "arguments": arguments})
    made = {name: lines(14, word=name) for name in ("a", "b")}
    items += [{"type": "function_call_output", "call_id": name, "output": made[name]} for name in made]
    shown = planned(apply((), parse(items, "openai-responses")), BUDGET).view
    assert shown.tokens <= BUDGET
    assert [message.position for message in shown.messages] == [0, 1, 2, 3, 4]


def test_outputs_of_exempt_tools_stay() -> None:
    rules = {"tools": [{"pattern": "plan_*", "exempt": True}]}
    assert not offloaded(parse(outputs(4, tokens=300, tool="plan_show")), **rules).edits
    assert offloaded(parse(outputs(4, tokens=300)), **rules).edits


def test_arguments_that_the_client_cannot_change_stay() -> None:
    """Calls of the provider's tools, and arguments with a schema of the provider."""
    messages = parse([user("Fix it."), call("c", "write_file", content="x" * 4_000), result("c", "Done.")])

    def with_call(**changes: bool) -> tuple[Message, ...]:
        part = messages[1].parts[-1]
        assert isinstance(part, ToolCall)
        return messages[0], replace(messages[1], parts=(replace(part, **changes),)), messages[2]

    assert [edit.position for edit in offloaded(messages).edits] == [1]
    assert not offloaded(with_call(fixed=True)).edits
    assert not offloaded(with_call(server=True)).edits
