"""Where the head ends and the tail begins, at the limits of each rule."""

from __future__ import annotations

import pytest

from compaction.layout import Layout, split
from compaction.settings import StrategySettings
from compaction.sizes.tokens import MESSAGE_OVERHEAD
from compaction.view import apply
from compaction.view.components import Components
from tests.compaction.builders import JSON, assistant, parse, planned, result, user, view_of


def sized(tokens: int) -> JSON:
    """Return a message of the model with this many tokens."""
    return assistant("x" * 4 * (tokens - MESSAGE_OVERHEAD))


def split_after_task(
    *sizes: int, share: float = 0.25, messages: int = 1, budget: int = 400, system: int = 0
) -> Layout:
    """Split a task of 20 tokens and answers of these sizes, with a system prompt of `system` tokens."""
    items = [{**sized(20), "role": "user"}, *map(sized, sizes)]
    view = apply((), parse(items), components=Components(system=system))
    settings = StrategySettings(tail_share=share, tail_messages=messages)
    return split(view, settings, budget_tokens=budget)


def test_the_tail_meets_both_minimums(subtests: pytest.Subtests) -> None:
    ten = [20] * 10
    for case, layout, kept, bound in (
        ("a share of the prompt", split_after_task(*ten), 3, "tokens"),
        ("a share of the budget", split_after_task(*ten, budget=100), 2, "tokens"),
        ("without the system prompt", split_after_task(*ten, budget=260, system=100), 2, "tokens"),
        ("nothing but the system prompt", split_after_task(*ten, budget=90, system=100), 1, "both"),
        ("exactly the share", split_after_task(*ten, budget=160), 2, "tokens"),
        ("a number of messages", split_after_task(*ten, messages=5), 5, "messages"),
        ("both at the same message", split_after_task(*ten, messages=3), 3, "both"),
        ("everything after the head", split_after_task(*ten, messages=11), 10, "all"),
    ):
        with subtests.test(case):
            assert (layout.head_end, 11 - layout.tail_start, layout.bound) == (1, kept, bound)
            assert (layout.head_tokens, layout.tail_tokens) == (20, 20 * kept)
            assert layout.middle_tokens == 20 * (10 - kept)


def test_a_message_above_the_share_does_not_extend_the_tail(subtests: pytest.Subtests) -> None:
    for case, layout, kept, bound in (
        ("it ends the tail", split_after_task(20, 101, 20, 20), 2, "giant"),
        (
            "it is as large as the share",
            split_after_task(60, 100, 20, 20, share=0.5, budget=200),
            3,
            "tokens",
        ),
        ("it belongs to the newest messages", split_after_task(20, 101, 20, 20, messages=3), 3, "both"),
    ):
        with subtests.test(case):
            assert (5 - layout.tail_start, layout.bound) == (kept, bound)


def test_the_task_is_found_among_the_first_eight_messages() -> None:
    notes = [user(f"<system-reminder>Note {n}</system-reminder>") for n in range(8)]
    rest = [user("Fix it."), sized(20), sized(20)]
    settings = StrategySettings(tail_share=0.01, tail_messages=1)
    assert split(view_of([*notes[:7], *rest]), settings, budget_tokens=8_000).head_end == 8
    assert split(view_of([*notes, *rest]), settings, budget_tokens=8_000).head_end == 1


def test_the_tail_does_not_extend_into_the_head_to_keep_a_pair() -> None:
    items = [user("Fix it."), result("lost", "x"), sized(20)]
    layout = split(view_of(items), StrategySettings(tail_messages=2), budget_tokens=8_000)
    assert (layout.head_end, layout.tail_start, layout.snapped) == (1, 1, 0)


def test_a_replacement_is_never_part_of_the_head() -> None:
    """Otherwise it could not be replaced. This session begins with answers."""
    items = [sized(20 + n) for n in range(30)]
    first = planned(view_of(items), 400, "baseline")
    second = planned(apply(first.edits, parse([*items, *items])), 400, "baseline")
    for made in (first, second):
        assert made.edits
        assert sum(entry.is_generated for entry in made.view.entries) == 1
