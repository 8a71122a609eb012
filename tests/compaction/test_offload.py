"""What is offloaded from the tail, and how much of it."""

from __future__ import annotations

from dataclasses import replace

from compaction.messages import Message, ToolCall
from compaction.planning.pipeline import Plan
from compaction.policy import Policy
from compaction.view import apply
from tests.compaction.builders import JSON, call, lines, parse, planned, result, user

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
