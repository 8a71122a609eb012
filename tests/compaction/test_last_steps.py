"""The last steps: what they may remove, and that it is restored as soon as there is room."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.edits import Op
from compaction.messages import Message, Role
from compaction.planning.pipeline import Plan, PlanRequest, plan
from compaction.policy import PRESETS, Budget, Policy, get_policy
from compaction.recap import Recap, extract
from compaction.recap.values import Mention
from compaction.view import View, apply
from compaction.view.components import Components
from tests.compaction.builders import (
    COUNTER,
    assistant,
    call,
    calls,
    dialogue,
    lines,
    parse,
    result,
    system,
    user,
)

BALANCED = get_policy("balanced")


def planned(view: View, budget: int, *, policy: Policy = BALANCED, trigger: str | None = "hard") -> Plan:
    request = PlanRequest(
        view=view, policy=policy, counter=COUNTER, budget=Budget(input_tokens=budget), trigger=trigger
    )
    return plan(request)


def latest_request(messages: tuple[Message, ...]) -> Message:
    return next(m for m in reversed(messages) if m.role is Role.USER and not m.tool_results)


def test_a_prompt_that_fits_keeps_its_tools() -> None:
    """97% of the budget is over the hard trigger, but it fits: nothing has to be shed."""
    items = [system(), user("Fix it."), call("c", "bash", command="ls"), result("c", "a.py"), user("Go on.")]
    messages = parse(items)
    used = sum(message.tokens for message in messages)
    view = apply((), messages, components=Components(tools=2_000))
    made = planned(view, int((used + 2_000) / 0.97))
    assert made.view.components.tools == 2_000
    assert made.fits


def test_shed_tools_are_restored_by_the_next_compaction_with_room() -> None:
    messages = parse([system(), user("Talk about it."), assistant(lines(60)), user("Go on.")])
    full = Components(tools=900)
    small = planned(apply((), messages, components=full), 500)
    assert [edit.text for edit in small.edits if edit.op is Op.SHED] == ["tools"]
    assert small.view.components.tools == 0

    grown = (*messages, *(replace(m, position=m.position + 4) for m in parse(dialogue(12))))
    later = planned(apply(small.edits, grown, components=full), 3_000)
    assert later.view.components.tools == 900
    assert later.fits
    stored = apply((*small.edits, *later.edits), grown, components=full)
    assert (stored.messages, stored.tokens) == (later.view.messages, later.view.tokens)


def test_a_transcript_with_tool_calls_keeps_its_tools_and_its_request() -> None:
    items = [system(), user("Old task."), *dialogue(6)[2:], user("New task: " + lines(12))]
    messages = parse(items)
    view = apply((), messages, components=Components(tools=900, memory=100))
    room = 900 + 100 + messages[0].tokens + messages[-1].tokens
    made = planned(view, room + 60)
    assert made.view.components == Components(tools=900, memory=100)
    assert made.view.messages[-1] is messages[-1]
    assert made.fits


def test_the_first_request_is_removed_if_it_leaves_no_room_for_the_latest() -> None:
    rest = [user("Old task: " + lines(40)), assistant("Done."), user("New task.")]
    for items in ([system(), *rest], rest):
        messages = parse(items)
        made = planned(apply((), messages), 100)
        assert made.fits
        kept = [message.text for message in made.view.messages if message in messages]
        assert kept == [message.text for message in messages if message.tokens < 100]
        assert (made.record.head_verbatim, made.record.tail_verbatim) == (False, True)


def test_the_last_steps_leave_room_to_grow() -> None:
    """They keep the newest messages that fit the target, and the newest even if it only fits the budget."""
    for step, size, kept in (("last_resort", 8, 2), ("last_resort", 35, 1), ("drop_oldest", 8, 2)):
        policy = replace(BALANCED, steps=(step,), tail_share=1.0)
        said = [assistant(lines(size, word=f"part{n}")) for n in range(9)]
        messages = parse([system(), user("Write nine parts."), *said])
        made = planned(apply((), messages), 1_000, policy=policy)
        assert made.fits
        assert [message for message in said if message["content"] in texts(made)] == said[-kept:]


def texts(made: Plan) -> list[str]:
    return [message.text for message in made.view.messages]


def test_tools_are_shed_only_if_nothing_else_fits() -> None:
    messages = parse([system(), *dialogue(4)[1:], user("New task.")])
    view = apply((), messages, components=Components(tools=900, memory=100))
    made = planned(view, 400)
    assert made.view.components == Components()
    assert latest_request(messages) in made.view.messages
    assert made.fits


def test_a_call_without_a_result_keeps_the_tools_although_they_do_not_fit() -> None:
    messages = parse([system(), *dialogue(4)[1:], user("New task."), call("open", "bash", command="ls")])
    view = apply((), messages, components=Components(tools=900, memory=100))
    made = planned(view, 400)
    assert made.view.components == Components(tools=900)
    assert made.view.messages[-1] is messages[-1]
    assert not made.fits


@pytest.mark.parametrize("preset", sorted(set(PRESETS) - {"off"}))
def test_the_latest_request_survives_a_long_tool_loop(preset: str) -> None:
    loop = [
        item
        for n in range(40)
        for item in (call(f"x{n}", "bash", command=f"make {n}"), result(f"x{n}", lines(20, word=f"s{n}")))
    ]
    messages = parse([system(), user("Task A."), assistant("Done."), user("Task B."), *loop])
    for budget in (4_000, 1_500, 400):
        made = planned(apply((), messages), budget, policy=get_policy(preset))
        assert messages[3] in made.view.messages, budget


@pytest.mark.parametrize("preset", sorted(set(PRESETS) - {"off"}))
@pytest.mark.parametrize("share", [0.9, 0.6])
def test_a_tail_that_does_not_fit_keeps_its_newest_messages(preset: str, share: float) -> None:
    """The answers are too short to be offloaded; one by one they fit, together they do not."""
    said = [assistant(lines(20, word=f"part{n}")) for n in range(5)]
    messages = parse([system(), user("Write five parts."), *dialogue(3)[2:], *said])
    room = sum(message.tokens for message in messages[-2:])
    made = planned(apply((), messages), int(room / share), policy=get_policy(preset))
    assert made.fits
    assert made.view.messages[-1] is messages[-1]


def test_the_recap_and_the_newest_result_stay_if_the_tail_does_not_fit() -> None:
    said = [assistant(lines(20, word=f"part{n}")) for n in range(4)]
    newest = [call("n", "bash", command="make test"), result("n", lines(8, word="newest"))]
    messages = parse([*dialogue(30), *said, *newest])
    budget = sum(message.tokens for message in messages[-4:])
    made = planned(apply((), messages), budget)
    assert made.fits
    assert "[Recap of turns" in "".join(message.text for message in made.view.messages)
    assert made.view.messages[-2:] == messages[-2:]
    [exception] = made.record.exceptions
    assert (exception.part, exception.step) == ("tail", "drop_oldest")


@pytest.mark.parametrize(
    "inserted",
    ["[Request interrupted by user]", "<local-command-stdout>Bye!</local-command-stdout>"],
)
def test_text_that_the_agent_inserted_is_not_the_latest_request(inserted: str) -> None:
    loop = [
        item for n in range(20) for item in (call(f"x{n}", "ls"), result(f"x{n}", lines(20, word=f"s{n}")))
    ]
    messages = parse([system(), user("Task A."), assistant("Done."), user("Task B."), user(inserted), *loop])
    for budget in (4_000, 400):
        assert messages[3] in planned(apply((), messages), budget).view.messages


@pytest.mark.slow
@given(
    roles=st.lists(st.sampled_from(["ask", "answer", "tools"]), min_size=1, max_size=25),
    sizes=st.lists(st.integers(1, 60), min_size=25, max_size=25),
    budget=st.integers(40, 4_000),
    preset=st.sampled_from(sorted(set(PRESETS) - {"off"})),
)
def test_no_step_removes_the_latest_request(
    roles: list[str], sizes: list[int], budget: int, preset: str
) -> None:
    items = [system(), user("Begin.")]
    for number, (role, size) in enumerate(zip(roles, sizes, strict=False)):
        text = lines(size, word=f"{role}{number}")
        if role == "tools":
            items += [call(f"c{number}", "bash", command="ls"), result(f"c{number}", text)]
        else:
            items.append(user(text) if role == "ask" else assistant(text))
    messages = parse(items)
    view = apply((), messages, components=Components(tools=120, memory=80))
    made = planned(view, budget, policy=get_policy(preset))
    assert latest_request(messages) in made.view.messages
    record = made.record
    changed = {exception.part for exception in record.exceptions}
    assert changed == {
        part for part, same in (("head", record.head_verbatim), ("tail", record.tail_verbatim)) if not same
    }
    again = planned(made.view, budget, policy=get_policy(preset))
    assert latest_request(messages) in again.view.messages


def test_a_giant_paste_does_not_pin_the_tail() -> None:
    """A paste of three quarters of the budget leaves once newer turns exist, not the turns after it."""
    paste = user("Here is the log:\n" + lines(150))
    items = [system(), user("Find the fault."), paste, assistant("Reading it."), *dialogue(6)[2:]]
    messages = parse(items)
    budget = int(messages[2].tokens / 0.75)
    made = planned(apply((), messages), budget)
    shown = {message.position: message for message in made.view.messages}
    assert 2 not in shown or shown[2].tokens < messages[2].tokens / 4
    assert all(message in made.view.messages for message in messages[-4:])
    assert made.record.tail_verbatim
    assert made.view.tokens <= budget * 0.5


def test_a_giant_paste_among_the_newest_messages_is_offloaded_unless_it_is_the_request() -> None:
    paste = user("Here is the log:\n" + lines(150))
    ended = [system(), user("Find the fault."), *dialogue(3)[2:], paste]
    request = parse(ended)[-1]
    budget = int(request.tokens * 1.03)
    assert planned(apply((), parse(ended)), budget).view.messages[-1].tokens == request.tokens

    followed = parse([*ended, assistant("Which part?"), user("The end.")])
    made = planned(apply((), followed), budget)
    [offloaded] = [edit for edit in made.edits if edit.strategy == "offload"]
    assert offloaded.position == request.position
    [exception] = made.record.exceptions
    assert (exception.part, exception.step, exception.messages) == ("tail", "offload", 1)
    assert exception.reason == offloaded.reason
    assert offloaded.handle is not None
    assert made.fits
    assert made.view.messages[-1] is followed[-1]


def test_results_of_many_parallel_calls_are_shortened_instead_of_removed() -> None:
    calls = [call(f"c{n}", "lookup", key=n)["tool_calls"][0] for n in range(60)]
    results = [result(f"c{n}", lines(6, word=f"w{n}")) for n in range(60)]
    items = [system(), user("Compare all of them."), {"role": "assistant", "tool_calls": calls}, *results]
    view = apply((), parse(items))
    made = planned(view, view.tokens * 3 // 4)
    assert made.record.strategies == ("offload",)
    assert made.fits
    assert len(made.view.messages) == len(items)


def test_giant_arguments_of_the_newest_call_are_offloaded_once_it_is_answered() -> None:
    """Otherwise the model would not see what it has just done."""
    written = call("w", "write_file", path="src/rates.py", content=lines(150))
    messages = parse([*dialogue(2), written, result("w", "Written.")])
    made = planned(apply((), messages), int(messages[-2].tokens * 0.9))
    [offloaded] = [edit for edit in made.edits if edit.strategy == "offload"]
    assert offloaded.position == messages[-2].position
    [shown] = made.view.messages[-2].tool_calls
    assert "src/rates.py" in shown.arguments
    assert offloaded.handle is not None
    assert offloaded.handle in shown.arguments
    assert made.view.messages[-1] is messages[-1]
    assert made.fits


@pytest.mark.parametrize("trigger", ["user", "turns"])
def test_a_short_session_can_be_compacted(trigger: str) -> None:
    """The tail is a share of the prompt where that is smaller than the budget."""
    messages = parse(dialogue(12, width=30))
    view = apply((), messages)
    made = planned(view, view.tokens * 10, trigger=trigger)
    assert made.record.state == "done"
    assert made.view.tokens < view.tokens * 0.7
    assert made.view.messages[-4:] == messages[-4:]


def test_a_recap_includes_a_request_older_than_the_messages_before_it() -> None:
    """The latest request stays while a tool loop after it is evicted; a newer request releases it."""
    mentions = tuple(Mention(name=f"src/mod_{n}.py", last=40 + n, own=41 + n, own_count=1) for n in range(9))
    previous = Recap(first_turn=0, last_turn=9, reserve=mentions)
    [request] = parse([user("Task B: repair src/total.py, which src/sum.py imports.")])
    recap = extract([request], counter=COUNTER, cap_tokens=400, previous=previous)
    assert recap.last_turn == 9
    assert "src/total.py" in recap.render()
    assert "src/mod_8.py" in recap.render()


@given(budget=st.integers(1, 3_000), answered=st.booleans())
def test_calls_without_results_stay_in_the_prompt(budget: int, answered: bool) -> None:
    """The agent is running them, and appends their results."""
    newest = [calls(("a", "write", {"text": lines(80)}), ("b", "bash", {"command": "ls"}))]
    newest += [result("a", lines(40))] if answered else []
    messages = parse([*dialogue(4), *newest])
    made = planned(apply((), messages), budget)
    assert made.view.messages[-len(newest) :] == messages[-len(newest) :]
    assert made.fits == (made.view.tokens <= budget)


def test_a_call_beside_a_search_of_the_provider_stays_too() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    found = [{"type": "web_search_result", "url": "http://a", "title": "t", "encrypted_content": "e" * 9_000}]
    blocks = [
        search,
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found},
        {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a.py"}},
    ]
    items = [user("Find it."), assistant("Yes."), user("Go on."), {"role": "assistant", "content": blocks}]
    messages = parse(items, "anthropic")
    assert planned(apply((), messages), 500).view.messages[-1] == messages[-1]
