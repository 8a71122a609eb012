"""The values used by a plan: policies, memory, meter, windows, triggers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compaction.errors import PolicyError, WorkingMemoryError
from compaction.memory.diffs import Change, Churn, churn, diff
from compaction.memory.values import FRAME, MAX_TOKENS, WorkingMemory
from compaction.message_window import MessageWindow
from compaction.policy import POLICY_VERSION, PRESETS, Budget, Policy, ToolRule, get_policy
from compaction.rendering import render
from compaction.sizes.breakdown import TokenBreakdown
from compaction.sizes.calibration import Calibration
from compaction.sizes.meter import Verdict, slope, spike_of
from compaction.triggers import TriggerState, evaluate
from compaction.view import apply
from compaction.view.components import Components
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

# Policies and budgets


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"target": 0.99}, "target"),
        ({"target": 0}, "target"),
        ({"hard": 1.5}, "hard"),
        ({"soft": 0.99}, "soft"),
        ({"steps": ["collapse", "pray"]}, "steps"),
        ({"clip_head": 1.0}, "clip_head"),
        ({"recap_tokens_max": 10}, "recap_tokens_max"),
        ({"cache_read_price": 0}, "cache_read_price"),
        ({"tail_messages": 0}, "tail_messages"),
        ({"tail_messages": 10**40}, "tail_messages"),
        ({"recap_tokens_max": 10**20}, "recap_tokens_max"),
        ({"collapse_tokens": "many"}, "collapse_tokens"),
        ({"colapse_tokens": 800}, "colapse_tokens"),
        ({"tools": [{"pattern": "x", "clip": 3}]}, "tools.clip"),
        ({"recap_span_share": 1e308}, "recap_span_share"),
        ({"descriptor_names": -1}, "descriptor_names"),
        ({"cache_read_price": 1e300}, "cache_read_price"),
        ({"tools": [{"pattern": "x", "clip_tokens": 3}]}, "tools.clip_tokens"),
        ({"tools": [{"pattern": "x", "clip_tokens": "900"}]}, "tools.clip_tokens"),
        ({"tools": [{"pattern": "x", "exempt": "false"}]}, "tools.exempt"),
        ({"tools": [{"pattern": "x", "is_read": 1}]}, "tools.is_read"),
        ({"tools": "Read"}, "tools"),
        ({"preset": "boldest"}, "preset"),
    ],
)
def test_an_invalid_policy_is_rejected_by_field(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.from_json(settings)
    assert caught.value.field == field
    assert field in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"colapse_tokens": 800}, r"colapse_tokens: .* known: .*collapse_tokens, .*preset, "),
        ({"steps": ["colapse"]}, r"'colapse'; known: .*collapse, "),
        ({"tools": [{"pattern": "*", "exemt": True}]}, r"tools.exemt: .* known: .*exempt, "),
        ({"tools": [{"exempt": True}]}, r"tools.pattern: must be given"),
        ({"recap_tokens_max": 100}, r"at least `recap_tokens_min` \(200\)"),
    ],
)
def test_the_error_for_a_wrong_setting_names_the_valid_ones(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(PolicyError, match=text):
        Policy.from_json(settings)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("setting", ["soft", "hard", "tail_share"])
def test_every_preset_accepts_shares(preset: str, setting: str) -> None:
    policy = Policy.from_json({"preset": preset, "target": 0.1, "soft": 0.0, "hard": 1.0} | {setting: 0.45})
    assert getattr(policy, setting) == 0.45


def test_the_triggers_may_be_equal() -> None:
    assert Policy.from_json({"soft": 0.7, "hard": 0.7}).soft == 0.7


def test_a_policy_survives_json() -> None:
    policy = Policy.from_json(
        {"preset": "aggressive", "hard": 1, "tools": [{"pattern": "Read*", "exempt": True}]}
    )
    assert policy.target == get_policy("aggressive").target
    assert policy.version == POLICY_VERSION
    assert Policy.from_json(policy.to_json()) == policy


def test_the_first_matching_tool_rule_applies() -> None:
    policy = replace(
        get_policy("balanced"),
        tools=(ToolRule(pattern="mcp__*", exempt=True), ToolRule(pattern="*", clip_tokens=100)),
    )
    assert policy.tool_rule("mcp__db__query").exempt
    assert policy.tool_rule("Bash").clip_tokens == 100
    assert get_policy("balanced").tool_rule("Bash") == ToolRule(pattern="*")


def test_a_budget_is_positive() -> None:
    with pytest.raises(PolicyError, match="at least 1"):
        Budget(input_tokens=0)


# Working memory


def test_a_memory_is_patched_rendered_and_compared() -> None:
    old = WorkingMemory.from_json({"task": "fix the pool", "decisions": ["monotonic clock"]})
    new = old.patched(
        {"decisions": ["monotonic clock", "evict at capacity"], "next": "run pytest", "task": None}
    )
    assert diff(old, new) == (
        Change(field="task", removed=("fix the pool",)),
        Change(field="decisions", added=("evict at capacity",)),
        Change(field="next", added=("run pytest",)),
    )
    assert (
        new.render()
        == f"[Working memory]\n{FRAME}\nDecisions:\n- monotonic clock\n- evict at capacity\nNext: run pytest"
    )
    assert WorkingMemory().render() == ""
    assert WorkingMemory.from_json(new.to_json()) == new


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"mood": "good"}, "mood"),
        ({"task": ["a"]}, "task"),
        ({"decisions": "a"}, "decisions"),
        ({"tried": [1]}, "tried"),
        ({"important_files": [f"f{n}" for n in range(8)]}, "important_files"),
    ],
)
def test_an_invalid_memory_is_rejected_by_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(WorkingMemoryError) as caught:
        WorkingMemory().patched(changes)
    assert caught.value.field == field


def test_a_bloated_memory_is_rejected() -> None:
    small = WorkingMemory(recent_edits=("- a\n+ b",))
    assert small.checked(COUNTER) < 20
    with pytest.raises(WorkingMemoryError, match=str(MAX_TOKENS)):
        WorkingMemory(tried=("x" * 8_000,)).checked(COUNTER)


def test_churn_is_distinguished_from_growth() -> None:
    grown = [WorkingMemory(decisions=tuple(f"d{i}" for i in range(n))) for n in range(6)]
    assert churn(grown) == (Churn.ADDITIVE, 0.0)
    assert churn([WorkingMemory(task=str(n), next=str(n)) for n in range(6)])[0] is Churn.CHURNING
    assert churn([WorkingMemory(next=str(n)) for n in range(6)]) == (Churn.STEADY, 0.0)


def test_memory_is_in_a_prompt_with_a_recap() -> None:
    text = WorkingMemory(task="fix the pool").render()
    made = planned(view_of(dialogue(40)), 2_000, memory_text=text)
    assert "recap" in made.record.strategies
    assert [m.text.endswith(text) for m in made.view.prompt_messages].count(True) == 1


# The meter


def test_the_tokens_of_a_prompt_are_broken_down_by_component() -> None:
    items = [system("s" * 40), user("u" * 80), call("c", "run"), result("c", "r" * 400)]
    components = Components(system=5, tools=7, memory=9)
    breakdown = TokenBreakdown.of_view(apply((), parse(items), components=components))
    assert breakdown.tokens == {
        "system": 13 + 5,
        "user": 23,
        "assistant": 13,
        "tool_outputs": 111,
        "tools": 7,
        "memory": 9,
    }
    assert breakdown.total == sum(m.tokens for m in parse(items)) + 21


def test_a_message_with_results_and_text_counts_as_tool_output() -> None:
    content = [
        {"type": "tool_result", "tool_use_id": "t", "content": "r" * 300},
        {"type": "text", "text": "u" * 100},
    ]
    messages = parse([{"role": "user", "content": content}], "anthropic")
    assert TokenBreakdown().add(messages).tokens == {"tool_outputs": messages[0].tokens}


def test_the_breakdown_of_a_turn_adds_up() -> None:
    messages = parse(dialogue(5))
    assert TokenBreakdown().add(messages[:9]).add(messages[9:]) == TokenBreakdown().add(messages)


def test_the_recap_is_a_component() -> None:
    made = planned(view_of(dialogue(40)), 2_000)
    breakdown = TokenBreakdown.of_view(made.view)
    assert breakdown.tokens["recap"] > 0
    assert breakdown.total == made.view.tokens


def test_a_calibrated_plan_fits_in_real_tokens() -> None:
    made = planned(view_of(dialogue(40)), 3_000, calibration=Calibration(initial=1.5, overhead=500))
    assert made.view.tokens * 1.5 + 500 <= 3_000
    assert (made.record.calibration, made.record.overhead) == (1.5, 500)


def saw_tooth(lows: list[int]) -> list[int]:
    """Return sizes that rise by 3,000 per turn to 95,000 and fall to each of `lows`."""
    return [size for low in lows for size in range(low, 95_000, 3_000)]


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [
        ([], Verdict.FLAT),
        ([5_000], Verdict.FLAT),
        ([5_000] * 30, Verdict.FLAT),
        ([1_000 + 190 * n for n in range(30)], Verdict.FLAT),
        ([1_000 + 210 * n for n in range(30)], Verdict.GROWING),
        ([1_000 * n for n in range(1, 6)] + [6_000] * 20, Verdict.FLAT),
        ([5_000 + 600 * n for n in range(30)], Verdict.GROWING),
        ([5_000 + 3_000 * n for n in range(30)], Verdict.WALL),
        (saw_tooth([40_000] * 6), Verdict.HELD),
        ([*saw_tooth([40_000] * 6), 41_000, 44_000], Verdict.HELD),
        (saw_tooth([30_000, 34_000, 31_000, 33_000, 32_000]), Verdict.HELD),
        ([10_000 * n for n in range(1, 10)] + [40_000, 43_000, 46_000], Verdict.HELD),
        ([10_000 * n for n in range(1, 10)] + [40_000] * 10, Verdict.FLAT),
        (saw_tooth([30_000, 42_000, 54_000, 64_000]), Verdict.WALL),
        (saw_tooth([40_000] * 3) + [96_000, 60_000] * 4, Verdict.WALL),
        (saw_tooth([40_000] * 3) + [50_000 + 4_000 * n for n in range(14)], Verdict.WALL),
    ],
)
def test_the_slope_has_a_verdict(sizes: list[int], verdict: Verdict) -> None:
    trend = slope(sizes, 100_000)
    assert trend.verdict is verdict
    assert (trend.turns_left is None) == (verdict is Verdict.FLAT)


def test_a_compaction_every_few_turns_is_a_wall_unless_the_prompt_is_small() -> None:
    for turns in (1, 3):
        compactions = range(0, 30, turns)
        assert slope([40_000] * 30, 100_000, compactions=compactions).verdict is Verdict.WALL
        assert slope([2_000] * 30, 100_000, compactions=compactions).verdict is Verdict.FLAT
    assert slope([40_000] * 30, 100_000, compactions=range(0, 30, 4)).verdict is Verdict.FLAT
    assert slope([40_000] * 30, 100_000, compactions=range(6)).verdict is Verdict.FLAT


def test_the_same_growth_has_the_same_verdict_in_a_larger_window() -> None:
    rising = [20_000 + 780 * n for n in range(30)]
    assert {slope(rising, window).verdict for window in (200_000, 1_000_000)} == {Verdict.GROWING}


def test_a_first_rise_before_a_compaction_is_not_a_wall() -> None:
    rising = [3_000 * n for n in range(30)]
    assert slope(rising, 90_000, trigger=88_000).verdict is Verdict.GROWING
    assert slope([*rising, 91_000], 90_000, trigger=88_000).verdict is Verdict.WALL


def test_the_turns_until_a_compaction_end_at_its_trigger() -> None:
    rising = [2_000 * n for n in range(30)]  # up to 58,000
    assert slope(rising, 100_000).turns_left == 21
    assert slope(rising, 100_000, trigger=70_000).turns_left == 6
    assert slope(rising, 100_000, trigger=50_000).turns_left == 0
    regrown = [*saw_tooth([40_000] * 3), 40_000, 43_000]
    assert slope(regrown, 100_000, trigger=95_000).turns_left == 17


def test_a_spike_of_outputs_is_distinguished_from_a_busy_session() -> None:
    [output] = parse([result("c", lines(300))])
    usual, busy = (TokenBreakdown(tokens={"tool_outputs": tokens}) for tokens in (10_000, 40_000))
    budget = 6 * output.tokens
    assert spike_of([output], context=usual, turns=10, budget=budget) is not None
    assert spike_of([output], context=busy, turns=10, budget=10 * output.tokens) is None
    assert spike_of([output], context=busy, turns=1, budget=budget) is not None
    assert spike_of([output], context=usual, turns=10, budget=10 * output.tokens) is None
    assert spike_of(parse([user(lines(300))]), context=usual, turns=10, budget=budget) is None


# Windows by count


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 20, 50, 400])
@pytest.mark.parametrize("items", [dialogue(30), tool_loop(30, parallel=3)])
def test_a_window_never_separates_a_pair(items: list[dict[str, Any]], size: int) -> None:
    messages = parse(items)
    trimmed = MessageWindow(max_messages=size).trim(messages)
    assert trimmed.messages[0] is messages[0]
    assert len(trimmed.messages) - trimmed.stats.over_by <= size
    assert faults(render(trimmed.messages, format="openai").messages, "openai") == []
    assert trimmed.stats.dropped_messages == len(messages) - len(trimmed.messages)
    assert all(any(kept is message for message in messages) for kept in trimmed.messages)


def test_a_window_reports_its_effect() -> None:
    items = [system(), user("a"), call("1", "r"), result("1", "x"), assistant("b"), user("c")]
    stats = MessageWindow(max_messages=4).trim(parse(items)).stats
    assert (stats.dropped_messages, stats.dropped_turns, stats.pairs_kept, stats.over_by) == (3, 1, 0, 0)


def test_recent_messages_are_kept_even_in_a_small_window() -> None:
    items = [user("a"), calls(("1", "r", {}), ("2", "r", {})), result("1", "x"), result("2", "y"), user("b")]
    trimmed = MessageWindow(max_messages=2, preserve_system=False, min_keep_recent=3).trim(parse(items))
    assert len(trimmed.messages) == 4
    assert trimmed.stats.over_by == 2


@pytest.mark.parametrize(
    ("window", "kept"),
    [
        (MessageWindow(max_messages=2), [0, 3]),
        (MessageWindow(max_messages=3), [0, 2, 3]),
        (MessageWindow(max_messages=2, preserve_system=False), [2, 3]),
        (MessageWindow(max_messages=1), [0, 3]),
    ],
)
def test_a_window_keeps_the_system_message_and_the_newest(window: MessageWindow, kept: list[int]) -> None:
    trimmed = window.trim(parse([system(), user("a"), assistant("b"), user("c")]))
    assert [message.position for message in trimmed.messages] == kept
    assert trimmed.stats.over_by == len(kept) - window.max_messages


def test_messages_that_cannot_be_cut_are_kept() -> None:
    items = [result("1", "x"), result("2", "y"), result("3", "z")]
    assert len(MessageWindow(max_messages=1).trim(parse(items)).messages) == 3


@pytest.mark.parametrize("options", [{"max_messages": 0}, {"max_messages": 1, "min_keep_recent": -1}])
def test_an_invalid_window_is_rejected(options: dict[str, int]) -> None:
    with pytest.raises(PolicyError, match=[*options][-1]):
        MessageWindow(**options)


# Triggers

QUIET = TriggerState(tokens=75_000, budget=100_000)


@pytest.mark.parametrize(
    ("state", "policy", "fired"),
    [
        (replace(QUIET, tokens=60_000), {}, None),
        (QUIET, {}, "soft"),
        (replace(QUIET, tokens=70_000), {}, "soft"),
        (replace(QUIET, open_calls=1), {}, None),
        (replace(QUIET, tokens=74_000, planned_turns=1), {}, None),
        (replace(QUIET, tokens=74_000, planned_turns=2), {}, "soft"),
        (replace(QUIET, tokens=75_000, planned_turns=0), {}, "soft"),
        (replace(QUIET, tokens=96_000, planned_turns=0), {}, "hard"),
        (
            replace(QUIET, tokens=30_000, turns_since_compaction=11, planned_turns=0),
            {"every_turns": 10},
            None,
        ),
        (
            replace(QUIET, tokens=30_000, turns_since_compaction=12, planned_turns=0),
            {"every_turns": 10},
            "turns",
        ),
        (replace(QUIET, tokens=60_000, idle_seconds=700, planned_turns=0), {"idle_seconds": 600}, "idle"),
        (replace(QUIET, compacted_tokens=72_000), {}, None),
        (replace(QUIET, compacted_tokens=65_000), {}, "soft"),
        (replace(QUIET, tokens=96_000, open_calls=2), {}, "hard"),
        (replace(QUIET, tokens=96_000, compacted_tokens=95_000), {}, None),
        (replace(QUIET, tokens=95_000), {}, "hard"),
        (replace(QUIET, tokens=100_000, compacted_tokens=99_900), {}, None),
        (replace(QUIET, tokens=101_000, compacted_tokens=100_900), {}, "hard"),
        (replace(QUIET, tokens=30_000, turns_since_compaction=10), {"every_turns": 10}, "turns"),
        (replace(QUIET, tokens=30_000, turns_since_compaction=9), {"every_turns": 10}, None),
        (replace(QUIET, tokens=30_000, turns_since_compaction=1), {"every_turns": 1}, "turns"),
        (replace(QUIET, is_soft_used=False), {}, None),
        (replace(QUIET, is_soft_used=False, turns_since_compaction=10), {"every_turns": 10}, "turns"),
        (replace(QUIET, tokens=60_000, idle_seconds=599), {"idle_seconds": 600}, None),
        (replace(QUIET, tokens=60_000, idle_seconds=600), {"idle_seconds": 600}, "idle"),
        (replace(QUIET, tokens=60_000, idle_seconds=1), {"idle_seconds": 1}, "idle"),
        (replace(QUIET, tokens=40_000, idle_seconds=700), {"idle_seconds": 600}, None),
        (replace(QUIET, tokens=99_000), {"soft": 0, "hard": 0}, None),
    ],
)
def test_when_a_trigger_fires(state: TriggerState, policy: dict[str, Any], fired: str | None) -> None:
    trigger = evaluate(state, replace(get_policy("balanced"), **policy))
    assert (trigger.name if trigger else None) == fired
    if trigger:
        assert trigger.is_background == (fired in ("soft", "turns", "idle"))
