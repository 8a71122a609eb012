"""Programs that the provider runs and that call tools of the client (A4, R1)."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import dialects
from compaction.capabilities import Capabilities
from compaction.continuation import Continuation
from compaction.invariants.pairs import safe_cuts
from compaction.policy import PRESETS
from compaction.rendering import render
from compaction.validation import validate
from compaction.view import apply
from tests.compaction.builders import assistant, lines, parse, planned, user

PROGRAM = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "x"}}
RETURNED = {"type": "code_execution_result", "stdout": "2", "stderr": "", "return_code": 0, "content": []}
ENDED = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": RETURNED}
CALLER = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}


def call(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "query", "input": {}, "caller": CALLER}


def answer(id: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "1"}]}


def says(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def program(id: str) -> dict[str, Any]:
    return {"type": "program", "id": f"prog_{id}", "call_id": id, "code": "x", "fingerprint": "f"}


def returned(id: str) -> dict[str, Any]:
    return {"type": "program_output", "id": f"out_{id}", "call_id": id, "result": "2", "status": "completed"}


RUN = [user("Add them."), says(PROGRAM, call("toolu_1")), answer("toolu_1"), says(call("toolu_2"))]
RUN += [answer("toolu_2"), says(ENDED, {"type": "text", "text": "It is 2."}), user("Thanks.")]


@pytest.mark.parametrize("prefill", [True, False])
@pytest.mark.parametrize("end", [2, 3, 5, 6, 7])
def test_a_program_that_waits_for_tools_of_the_client_is_served_as_pushed(end: int, prefill: bool) -> None:
    model = Capabilities(prefill=prefill)
    shown = render(parse(RUN[:end], "anthropic"), format="anthropic", capabilities=model).messages
    assert shown[: len(RUN[:end])] == RUN[:end]
    assert validate(shown, "anthropic", capabilities=model) == ()


def test_a_paused_response_is_served_as_pushed() -> None:
    items = [user("Add them."), says(PROGRAM), says(ENDED), user("Thanks.")]
    assert render(parse(items, "anthropic"), format="anthropic").messages == items


@pytest.mark.parametrize("left", [[0, 2, 3, 4, 5, 6], [0, 3, 4, 6], [0, 1, 2, 3, 4, 6]])
def test_calls_without_their_program_are_served_without_a_caller(left: list[int]) -> None:
    items = [RUN[index] for index in left]
    assert {found.rule for found in validate(items, "anthropic")} >= {"A4"}
    shown = render(parse(items, "anthropic"), format="anthropic").messages
    assert validate(shown, "anthropic") == ()
    assert "srvtoolu_1" not in str(shown)


@pytest.mark.parametrize("prefill", [True, False])
def test_a_program_without_a_result_is_not_served_with_an_answer_that_ends_the_prompt(prefill: bool) -> None:
    model = Capabilities(prefill=prefill)
    items = [*RUN[:3], says({"type": "text", "text": "It is 2."})]
    shown = render(parse(items, "anthropic"), format="anthropic", capabilities=model).messages
    assert validate(shown, "anthropic", capabilities=model) == ()
    assert "srvtoolu_1" not in str(shown)


@pytest.mark.parametrize("prefill", [True, False])
def test_a_program_that_is_followed_by_the_result_of_another_call_is_not_served(prefill: bool) -> None:
    """The result has no call, so the prompt contains it as text, which ends the turn of the program."""
    model = Capabilities(prefill=prefill)
    items = [user("Add them."), says(PROGRAM, call("toolu_1")), answer("toolu_9")]
    shown = render(parse(items, "anthropic"), format="anthropic", capabilities=model).messages
    assert validate(shown, "anthropic", capabilities=model) == ()


WAITING = {
    "anthropic": RUN[:3],
    "openai-responses": [
        user("Add them."),
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
        program("call_1"),
        {"type": "function_call", "call_id": "call_2", "name": "query", "arguments": "{}"}
        | {"caller": {"type": "program", "caller_id": "call_1"}},
        {"type": "function_call_output", "call_id": "call_2", "output": "1"}
        | {"caller": {"type": "program", "caller_id": "call_1"}},
    ],
}


ITEMS = [*WAITING["openai-responses"], returned("call_1"), assistant("It is 2."), user("Thanks.")]


@pytest.mark.parametrize("left", [[0, 1, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 6, 7], [0, 1, 3, 4, 6, 7]])
def test_items_without_their_program_are_served_without_a_caller(left: list[int]) -> None:
    items = [ITEMS[index] for index in left]
    assert {found.rule for found in validate(items, "openai-responses")} == {"R1"}
    assert not Continuation().after(parse(items, "openai-responses"), "openai-responses").regular
    shown = render(parse(items, "openai-responses"), format="openai-responses").messages
    assert validate(shown, "openai-responses") == ()
    assert "call_1" not in str(shown)
    assert [item["call_id"] for item in shown if "call_id" in item] == ["call_2", "call_2"]


@pytest.mark.parametrize("end", [5, 6, 7, 8])
def test_items_with_their_program_are_served_as_pushed(end: int) -> None:
    shown = render(parse(ITEMS[:end], "openai-responses"), format="openai-responses").messages
    assert shown == ITEMS[:end]
    assert validate(shown, "openai-responses") == ()


@pytest.mark.parametrize("format", sorted(WAITING))
def test_no_cut_separates_a_program_from_its_calls_and_its_result(format: str) -> None:
    items = [*WAITING[format], *(RUN[3:6] if format == "anthropic" else [returned("call_1")])]
    messages = dialects.parse([*items, assistant("It is 2."), user("Thanks.")], format=format)
    assert safe_cuts(messages) - {len(items), len(items) + 1} == {0, 1, len(messages)}


SEARCH = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
]
EXECUTED = [
    {"executableCode": {"language": "PYTHON", "code": "print(2)"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
]
REPEATED = {
    "anthropic": [user("Search."), says(*SEARCH, {"type": "text", "text": "Found."})],
    "gemini": [{"role": "user", "parts": [{"text": "Run."}]}, {"role": "model", "parts": EXECUTED}],
}
REPEATED["gemini without a result"] = [REPEATED["gemini"][0], {"role": "model", "parts": EXECUTED[:1]}]


@pytest.mark.parametrize("name", sorted(REPEATED))
def test_turns_whose_tools_of_the_provider_have_the_same_id_can_be_cut(name: str) -> None:
    messages = parse(REPEATED[name] * 3, name.split()[0])
    assert safe_cuts(messages) == set(range(len(messages) + 1))


@pytest.mark.parametrize("policy", sorted(PRESETS))
@pytest.mark.parametrize("budget", [1, 200])
@pytest.mark.parametrize("format", sorted(WAITING))
def test_a_program_stays_in_the_prompt_until_its_result_is_there(
    format: str, budget: int, policy: str
) -> None:
    earlier = [user("Hello."), assistant(lines(40)), user(lines(40)), assistant("Yes.")]
    messages = parse([*earlier, *WAITING[format]], format)
    shown = planned(apply((), messages), budget, policy).view.messages
    assert shown[-len(WAITING[format]) + 1 :] == messages[-len(WAITING[format]) + 1 :]
