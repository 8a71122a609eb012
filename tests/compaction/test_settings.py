"""System messages within a conversation, and messages that change tools or settings from there on."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from compaction import dialects
from compaction.capabilities import Capabilities, capabilities_of
from compaction.edits import Edit
from compaction.messages import Message
from compaction.planning.pipeline import plan
from compaction.planning.request import PlanRequest
from compaction.policy import PRESETS, Budget, get_policy
from compaction.rendering import render
from compaction.validation import validate
from compaction.view import apply
from tests.compaction.builders import COUNTER, JSON, assistant, lines, parse, system, user
from tests.compaction.providers import faults

OPUS = capabilities_of("claude-opus-5-5")
OLDER = capabilities_of("claude-sonnet-4-6")
TOOL = {"name": "deploy", "description": "Deploys the service. " * 20, "input_schema": {"type": "object"}}
ADDED = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": TOOL}}
ADDITION = {"role": "system", "content": [ADDED]}
EFFORT = {"role": "system", "content": [], "output_config": {"effort": "low"}}
REMINDER = {"role": "system", "content": "The budget is low.", "clear_at": "next_user_message"}
SEARCH = [
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
]


def use(call_id: str) -> JSON:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": "run", "input": {}}]}


def output(call_id: str, text: str = "done") -> JSON:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}],
    }


def work(first: int, count: int) -> list[JSON]:
    steps = range(first, first + count)
    return [each for n in steps for each in (use(f"t{n}"), output(f"t{n}", lines(30, word=f"w{n}")))]


def compacted(
    messages: tuple[Message, ...], *, policy: str = "balanced", edits: tuple[Edit, ...] = (), budget: int
) -> PlanRequest:
    return PlanRequest(
        view=apply(edits, messages),
        policy=get_policy(policy),
        counter=COUNTER,
        budget=Budget(input_tokens=budget),
        trigger="hard",
        capabilities=OPUS,
    )


@pytest.mark.parametrize(
    ("model", "accepts"),
    [
        ("claude-opus-4-7", False),
        ("claude-opus-4-8", True),
        ("claude-opus-5", True),
        ("claude-sonnet-5", False),
        ("claude-sonnet-5-5", True),
        ("claude-haiku-4-5", False),
        ("claude-haiku-5-5", True),
        ("claude-fable-5", True),
    ],
)
def test_models_that_accept_system_messages_within_a_conversation(model: str, accepts: bool) -> None:
    items = [user("x"), system("Be brief."), assistant("y"), user("z")]
    capabilities = capabilities_of(model)
    shown = render(parse(items, "anthropic"), format="anthropic", capabilities=capabilities).messages
    assert (shown == items) is accepts
    assert [v.rule for v in validate(items, "anthropic", capabilities=capabilities)] == ["A9"] * (not accepts)


#: Positions of system messages that the provider rejects. Source: the errors of claude-opus-5-5, which name
#: both conditions.
MISPLACED: list[tuple[list[int], list[Any]]] = [
    ([], [user("x"), system()]),
    ([], [user("x"), system(), REMINDER, assistant("y"), user("z"), EFFORT]),
    ([], [user("x"), {"role": "assistant", "content": SEARCH}, system(), assistant("y"), user("z")]),
    ([], [user("x"), EFFORT, user("y"), assistant("z"), EFFORT, user("u")]),
    ([1], [user("x"), system(), user("y")]),
    ([2], [user("x"), assistant("y"), system(), user("z")]),
    ([2, 3], [user("x"), assistant("y"), system(), REMINDER, assistant("z"), user("u")]),
    ([2], [user("x"), use("a"), system(), output("a")]),
    ([0], [system(), user("x")]),
]


@pytest.mark.parametrize(("positions", "items"), MISPLACED)
def test_misplaced_system_messages_are_reported_and_become_the_users(
    positions: list[int], items: list[Any]
) -> None:
    found = validate(items, "anthropic", capabilities=OPUS)
    assert [v.position for v in found if v.rule == "A9"] == positions
    prompt = render(dialects.parse(items, format="anthropic"), format="anthropic", capabilities=OPUS)
    assert validate(prompt.messages, "anthropic", capabilities=OPUS) == ()
    if not positions:
        assert prompt.messages == items
    older = render(dialects.parse(items, format="anthropic"), format="anthropic", capabilities=OLDER)
    assert validate(older.messages, "anthropic", capabilities=OLDER) == ()
    assert faults(older.messages, "anthropic") == []  # without fields and blocks of system messages


def test_system_messages_of_other_formats_are_placed_as_anthropic_requires() -> None:
    items = [user("x"), assistant("y"), system("Be brief."), user("z"), system("Be exact."), assistant("u")]
    shown = render(parse([*items, user("v")]), format="anthropic", capabilities=OPUS).messages
    assert [item["role"] for item in shown] == [
        "user",
        "assistant",
        "user",
        "user",
        "system",
        "assistant",
        "user",
    ]
    assert validate(shown, "anthropic", capabilities=OPUS) == ()


@pytest.mark.parametrize("policy", [name for name in PRESETS if name != "off"])
def test_changes_of_tools_and_effort_survive_compactions(policy: str) -> None:
    items = [user("Deploy."), system("Skills: none."), *work(0, 10), ADDITION, *work(10, 5), EFFORT]
    items += [*work(15, 5), REMINDER, *work(20, 10)]
    edits: tuple[Edit, ...] = ()
    for count in (len(items) - 12, len(items)):
        messages = parse(items[:count], "anthropic")
        made = plan(compacted(messages, policy=policy, edits=edits, budget=1_500))
        edits = made.view.edits
        shown = render(made.view.prompt_messages, format="anthropic", capabilities=OPUS).messages
        assert made.fits
        assert len(shown) < count / 2
        assert [item for item in shown if item in (ADDITION, EFFORT)] == [ADDITION, EFFORT]
        assert validate(shown, "anthropic", capabilities=OPUS) == ()


def test_between_compactions_prompts_with_system_messages_only_grow_at_their_end() -> None:
    """Claude Code inserts one after the results of each turn."""
    items = [user("Deploy."), system("Skills: none.")]
    for n in range(30):
        items += [*work(n, 1), system(f"{30 - n} turns are left.")]
    edits = plan(compacted(parse(items[:50], "anthropic"), budget=1_500)).view.edits
    prompts = []
    for count in range(53, len(items), 3):
        shown = apply(edits, parse(items[:count], "anthropic")).prompt_messages
        prompts.append(render(shown, format="anthropic", capabilities=OPUS).messages)
    assert len(prompts[0]) < 40
    assert all(after[: len(before)] == before for before, after in pairwise(prompts))


def test_definitions_of_added_tools_are_counted() -> None:
    with_tool, without = parse([ADDITION], "anthropic")[0], parse([EFFORT], "anthropic")[0]
    assert with_tool.tokens - without.tokens > COUNTER.count(TOOL["description"])


def test_the_tools_that_codex_sends_as_an_item_precede_the_task() -> None:
    """Its newest models receive no `instructions` and no `tools`."""
    tools = {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "exec"}]}
    rules = {"type": "message", "role": "developer", "content": "You are Codex."}
    task, then = ({"type": "message", "role": "user", "content": t} for t in ("Fix the pool.", "Test it."))
    effort = {"type": "configuration_update", "reasoning": {"effort": "high"}}
    more = {**tools, "tools": [{"type": "function", "name": "late", "parameters": {}}]}

    def steps(first: int) -> list[JSON]:
        numbers = range(first, first + 10)
        return [each for n in numbers for each in (_call(n), _output(n))]

    items = [tools, rules, task, *steps(0), then, effort, *steps(10), more, *steps(20)]
    made = plan(compacted(parse(items, "openai-responses"), budget=1_500))
    shown = render(made.view.prompt_messages, format="openai-responses").messages
    assert shown[:3] == [tools, rules, task]
    assert [item for item in shown[3:] if item in (then, effort, more)] == [then, effort, more]
    assert len(shown) < len(items) / 2
    assert validate(shown, "openai-responses") == ()


def _call(n: int) -> JSON:
    return {"type": "function_call", "call_id": f"c{n}", "name": "exec", "arguments": f'{{"n": {n}}}'}


def _output(n: int) -> JSON:
    return {"type": "function_call_output", "call_id": f"c{n}", "output": lines(30, word=f"w{n}")}


def test_no_cut_separates_a_search_for_tools_from_its_output() -> None:
    search = {"type": "tool_search_call", "call_id": "s", "execution": "client", "arguments": {}}
    found = {"type": "tool_search_output", "call_id": "s", "execution": "client", "tools": []}
    talk = [{"type": "message", "role": "user", "content": lines(20)}, search, found]
    items = [{"type": "message", "role": "user", "content": "Go."}, *talk * 8]
    view = apply((), parse(items, "openai-responses"))
    calls = {index for index, item in enumerate(items) if item is found}
    assert not calls & view.cuts
    assert calls


def test_an_unknown_model_is_served_only_messages_of_the_user_and_the_assistant() -> None:
    items = [user("x"), ADDITION, assistant("y"), user("z"), EFFORT, REMINDER]
    shown = render(parse(items, "anthropic"), format="anthropic", capabilities=Capabilities()).messages
    assert shown == [user("x"), assistant("y"), user("z"), user("[system] The budget is low.")]
