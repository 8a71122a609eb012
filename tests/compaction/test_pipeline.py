"""Plans over the life of a session: valid, within the budget, deterministic and revertible."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from compaction.capabilities import Capabilities
from compaction.edits import Edit
from compaction.messages import Message, Thinking
from compaction.planning.pipeline import Plan, PlanRequest, plan
from compaction.planning.record import PlanState, break_even_turns, new_tokens
from compaction.policy import PRESETS, Budget, ToolRule, get_policy
from compaction.recap import Recap
from compaction.rendering import render
from compaction.strategies import STRATEGIES
from compaction.validation import validate
from compaction.view import apply, revert
from tests.compaction.builders import (
    COUNTER,
    assistant,
    call,
    calls,
    dialogue,
    faults,
    lines,
    parse,
    planned,
    result,
    system,
    tool_loop,
    user,
    view_of,
)

#: 331 messages with user turns throughout; 317 messages with one request and then only (parallel) tool calls.
INPUT_A = [*dialogue(82, 20), assistant("All done.")]
INPUT_B = tool_loop(105, parallel=2, width=12)


class Session:
    """A session that compacts as it grows, as a store does."""

    def __init__(self, messages: tuple[Message, ...], budget: int, policy: str = "balanced") -> None:
        self.messages = messages
        self.budget = Budget(input_tokens=budget)
        self.policy = get_policy(policy)
        self.batches: list[tuple[Edit, ...]] = []
        self.plans: list[Plan] = []

    @property
    def edits(self) -> tuple[Edit, ...]:
        return tuple(edit for batch in self.batches for edit in batch)

    def step(self, count: int) -> Plan:
        """The plan for the prompt of the first `count` messages; its edits are kept."""
        view = apply(self.edits, self.messages[:count])
        previous = self.plans[-1].recap if self.plans else None
        made = plan(
            PlanRequest(view=view, policy=self.policy, counter=COUNTER, budget=self.budget, previous=previous)
        )
        self.plans.append(made)
        self.batches.append(made.edits)
        return made


def steps(items: list[dict[str, Any]]) -> list[int]:
    """The message counts at which the model is called."""
    return [n for n, item in enumerate(items) if item["role"] == "assistant"]


@pytest.mark.slow
@pytest.mark.parametrize(("items", "length"), [(INPUT_A, 331), (INPUT_B, 317)])
@pytest.mark.parametrize(
    ("policy", "share"),
    [
        ("balanced", 0.1),
        ("balanced", 0.25),
        ("balanced", 0.5),
        ("baseline", 0.25),
        ("masking", 0.25),
        ("aggressive", 0.25),
    ],
)
def test_every_plan_of_a_growing_session_keeps_the_promises(
    items: list[dict[str, Any]], length: int, share: float, policy: str
) -> None:
    assert len(items) == length
    messages = parse(items)
    session = Session(messages, max(600, int(sum(m.tokens for m in messages) * share)), policy)
    last: dict[str, list[dict[str, Any]]] = {}
    for count in steps(items):
        made = session.step(count)
        assert made.fits, made.reason
        again = apply(session.edits, messages[:count])
        assert again.messages == made.view.messages
        assert made.record.head_verbatim
        for format in ("anthropic", "openai"):
            shown = render(made.view.messages, format=format).messages
            assert faults(shown, format) == []
            if not made.edits and format in last:
                assert shown[: len(last[format])] == last[format]
            last[format] = shown
    assert any(made.edits for made in session.plans)


def test_nothing_happens_below_the_trigger() -> None:
    made = planned(view_of(dialogue(3)), 100_000)
    assert made.edits == ()
    assert made.record.state is PlanState.NOT_DUE
    assert made.fits


def test_a_plan_without_gain_is_not_applied() -> None:
    view = view_of([system(), user("x" * 400), assistant("ok")])
    made = planned(view, 100, trigger="user")
    assert made.record.state is PlanState.NO_GAIN
    assert made.view is view
    assert not made.fits
    assert "latest user message" in made.reason


def test_a_plan_is_the_same_every_time() -> None:
    first, second = (planned(view_of(INPUT_B), 3_000) for _ in range(2))
    assert first.edits == second.edits
    assert first.record == second.record


def test_planning_again_at_once_changes_nothing() -> None:
    made = planned(view_of(INPUT_A), 5_000)
    assert made.edits
    again = planned(made.view, 5_000, previous=made.recap)
    assert again.edits == ()
    assert again.recap is made.recap


@pytest.mark.slow
def test_any_past_prompt_can_be_rebuilt() -> None:
    messages = parse(INPUT_A)
    session = Session(messages, 4_000)
    seen = []
    for count in steps(INPUT_A):
        made = session.step(count)
        seen.append((count, len(session.batches), made.view.messages))
    for count, batches, shown in seen[::7]:
        edits = [edit for batch in session.batches[:batches] for edit in batch]
        assert apply(edits, messages[:count]).messages == shown


def test_a_reverted_batch_leaves_no_trace() -> None:
    messages = parse(INPUT_A)
    session = Session(messages, 4_000)
    for count in steps(INPUT_A):
        session.step(count)
    last = next(n for n in range(len(session.batches) - 1, -1, -1) if session.batches[n])
    before = tuple(edit for batch in session.batches[:last] for edit in batch)
    kept = revert(session.edits, session.batches[last])
    assert apply(kept, messages).messages == apply(before, messages).messages
    stored = [replace(edit) for edit in session.batches[last]]
    assert revert(session.edits, stored) == kept


def test_the_record_contains_the_cost_of_a_compaction() -> None:
    made = planned(view_of(INPUT_A), 5_000)
    record = made.record
    assert record.state is PlanState.DONE
    assert record.trigger == "hard"
    assert record.tokens_saved == record.tokens_before - record.tokens_after > 0
    assert record.tokens_after == made.view.tokens <= 1.05 * record.target  # the recap has a minimum size
    assert record.head_tokens + record.middle_tokens + record.tail_tokens == record.tokens_before
    shared = sum(m.tokens for m in made.view.messages[:2])
    assert record.tokens_rebilled == record.tokens_after - shared
    cached = record.tokens_rebilled - made.view.messages[-1].tokens  # no call has read the last answer yet
    assert record.break_even_turns == round(11.5 * cached / record.tokens_saved, 1)
    assert record.summarizer_needed
    assert record.head_verbatim
    assert record.tail_verbatim
    assert record.to_json()["state"] == "done"


def test_a_pinned_message_is_never_edited() -> None:
    items = tool_loop(30, width=60)
    messages = tuple(replace(m, pinned=m.position in (9, 20)) for m in parse(items))
    made = planned(apply((), messages), 6_000, "aggressive")
    assert made.fits
    assert all(any(shown is messages[p] for shown in made.view.messages) for p in (8, 9, 20, 21))
    for format in ("anthropic", "openai"):
        assert faults(render(made.view.messages, format=format).messages, format) == []


def test_exempt_tools_and_failures_are_never_edited() -> None:
    policy = replace(
        get_policy("masking"), tools=(ToolRule(pattern="plan_*", exempt=True),), steps=("collapse",)
    )
    items = [system(), user("Go.")]
    items += [call("p", "plan_show"), result("p", lines(120)), call("r", "read_file", path="a.py")]
    items += [
        result("r", lines(120)),
        call("e", "bash", command="make"),
        result("e", "Error: no\n" + lines(120)),
    ]
    items += [assistant("Hm."), user("Go on."), assistant("Yes."), user("Well?")]
    made = planned(view_of(items), 5_000, policy)
    assert [edit.position for edit in made.edits] == [5, 7]
    assert made.view.messages[7].text.startswith("Error: no\n[120 lines not shown; handle h_")


@pytest.mark.parametrize("name", ["collapse", "clip", "recency"])
def test_a_step_makes_only_the_edits_that_the_target_requires(name: str) -> None:
    items = [system(), user("Help me with the pool.")]
    for step in range(20):
        items += [call(f"c{step}", "bash", command=f"make part_{step}"), result(f"c{step}", lines(400))]
    view = view_of(items)
    policy = replace(get_policy("balanced"), steps=(name,), target=0.8)
    made = planned(view, view.tokens, policy, trigger="user")
    assert len(made.edits) > 1
    assert made.view.tokens <= made.record.target < view.with_edits(made.edits[:-1]).tokens


def test_bound_thinking_is_removed_after_an_earlier_edit() -> None:
    thought = {"type": "thinking", "thinking": "Let me see. " * 30, "signature": "s"}
    items: list[dict[str, Any]] = [user("Fix it.")]
    for n in range(40):
        items.append({"role": "assistant", "content": [thought, {"type": "text", "text": f"Step {n}."}]})
        items.append(user(f"Go on {n}. " * 10))
    bound = Capabilities(bound_thinking=True)
    view = view_of(items, "anthropic")
    made = planned(view, 4_000, capabilities=bound)
    assert made.edits
    assert not any(isinstance(part, Thinking) for m in made.view.messages for part in m.parts)
    assert made.record.strategies[-1] == "clear_thinking"
    assert not made.record.tail_verbatim
    [exception] = made.record.exceptions
    assert (exception.part, exception.step) == ("tail", "clear_thinking")
    assert "provider rejects" in exception.reason
    shown = render(made.view.messages, format="anthropic", capabilities=bound).messages
    assert validate(shown, "anthropic", capabilities=bound, edited=range(len(shown))) == ()


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@pytest.mark.parametrize("seed", range(4))
def test_every_strategy_keeps_every_rule(name: str, seed: int) -> None:
    """Each strategy alone, on untidy transcripts."""
    items = untidy(random.Random(seed))
    policy = replace(get_policy("balanced"), steps=(name,), tail_messages=2, tail_share=0.1)
    view = view_of(items)
    made = planned(view, max(50, view.tokens // 3), policy)
    assert made.view.tokens <= view.tokens
    assert made.record.tokens_saved == sum(edit.tokens_before - edit.tokens_after for edit in made.edits)
    for format in ("anthropic", "openai"):
        shown = render(made.view.messages, format=format).messages
        assert validate(shown, format) == ()
        assert faults(shown, format) == []


def untidy(chance: random.Random) -> list[dict[str, Any]]:
    """Parallel, late, missing, early and duplicate results, errors, empty and huge outputs."""
    items: list[dict[str, Any]] = [system(), user("Go.")]
    for step in range(25):
        ids = [f"c{chance.randrange(step + 1)}_{n}" for n in range(chance.randrange(1, 4))]
        items.append(calls(*[(i, "bash", {"command": f"cat f{chance.randrange(4)}.py"}) for i in ids]))
        answers = [result(i, lines(chance.choice([0, 1, 20, 300]))) for i in ids if chance.random() < 0.9]
        chance.shuffle(answers)
        items += answers + answers[: chance.randrange(2)]
        if chance.random() < 0.3:
            items.append(user("And now?" if chance.random() < 0.8 else ""))
        if chance.random() < 0.2:
            items.append(result(f"x{step}", "Error: stray"))
    return items


def test_presets_are_valid() -> None:
    assert set(PRESETS) == {"off", "baseline", "masking", "balanced", "aggressive"}
    assert all(name == policy.name for name, policy in PRESETS.items())


def test_the_policy_off_does_nothing_and_records_the_reason() -> None:
    made = planned(view_of(INPUT_A), 1_000, "off")
    assert made.edits == ()
    assert made.record.state is PlanState.NOT_DUE
    assert not made.fits
    assert "'off'" in made.reason


def test_evictions_after_a_recap_are_recorded_for_drop_oldest() -> None:
    messages = parse(dialogue(60))
    recapped = planned(apply((), messages[:120]), 3_000, replace(get_policy("balanced"), steps=("recap",)))
    assert recapped.recap is not None
    edits, view, recap = recapped.edits, recapped.view, recapped.recap
    for count in (180, 240):  # the second drop finds the recap in the edit of the first
        dropped = planned(
            apply(edits, messages[:count]),
            2_500,
            replace(get_policy("balanced"), steps=("drop_oldest",)),
            previous=recap,
        )
        assert {edit.strategy for edit in dropped.edits} == {"drop_oldest"}
        shown = [entry for entry in dropped.view.entries if entry.is_generated]
        assert [entry.rule for entry in shown] == ["drop_oldest"]
        hidden = sum(entry.last - entry.first + 1 for entry in shown)
        marker = f"[{hidden} earlier messages ({shown[0].first} to {shown[0].last}) are not shown.]"
        assert shown[0].message.text == f"{recap.render()}\n\n{marker}"
        edits, view = edits + dropped.edits, dropped.view
    assert view.tokens <= 2_500


@pytest.mark.parametrize("has_had_recap", [False, True])
def test_a_prompt_without_a_recap_shows_one_marker_for_all_evicted_messages(has_had_recap: bool) -> None:
    messages = parse(dialogue(60))
    edits: tuple[Edit, ...] = ()
    before = 0
    for count in (120, 180, 240):
        previous = Recap(first_turn=0, last_turn=1) if has_had_recap else None  # the last resort removed it
        made = planned(apply(edits, messages[:count]), 2_500, "baseline", previous=previous)
        edits += made.edits
        [marker] = [entry for entry in made.view.entries if entry.is_generated]
        hidden = marker.last - marker.first + 1
        expected = f"[{hidden} earlier messages ({marker.first} to {marker.last}) are not shown.]"
        assert marker.message.text == expected
        assert made.record.dropped == hidden - before
        before = hidden


@pytest.mark.parametrize(
    ("rebilled", "saved", "turns"),
    [(1_000, 500, 23.0), (100, 1, 1150.0), (100, 0, None), (100, -5, None), (-100, 5, 0.0)],
)
def test_the_turns_until_a_compaction_breaks_even(rebilled: int, saved: int, turns: float | None) -> None:
    """By default, a cache write costs 12.5 times as much as a read."""
    assert break_even_turns(get_policy("balanced"), rebilled, saved) == turns


def test_no_call_has_read_the_last_answer_and_what_follows_it() -> None:
    messages = parse([user("Go."), assistant("Old."), user("Go on."), call("c", "ls"), result("c", "a.py")])
    assert new_tokens(messages) == sum(message.tokens for message in messages[3:])
    assert new_tokens(messages[:4]) == messages[3].tokens
    assert new_tokens(messages[:3]) == sum(message.tokens for message in messages[1:3])
