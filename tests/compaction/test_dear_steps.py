"""Steps that evict messages run only if necessary or worthwhile, and handles remain reachable."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from compaction.edits import Edit, Op
from compaction.planning.pipeline import Plan
from compaction.policy import get_policy
from compaction.recap import Recap
from compaction.recap.handles import handles_of
from compaction.recap.parse import recap_parse
from compaction.recap.spans import Summary
from compaction.strategies import STRATEGIES
from compaction.view import View, apply
from compaction.view.components import Components
from tests.compaction.builders import (
    COUNTER,
    JSON,
    assistant,
    call,
    lines,
    parse,
    planned,
    result,
    tool_loop,
    user,
)

HANDLE = re.compile(r"h_[0-9a-f]{10}")


def shown(view: View) -> str:
    return "\n".join(message.text for message in view.messages)


def evicts(made: Plan) -> bool:
    return any(edit.op is Op.EVICT for edit in made.edits)


def almost_all_tail() -> list[JSON]:
    """Two large reads, then a tail that takes more than the target."""
    items = [user("Make the tests pass.")]
    for n in range(2):
        items += [
            call(f"c{n}", "read_file", path=f"src/db_{n}.py"),
            result(f"c{n}", lines(270, word=f"v{n}")),
        ]
    items += [assistant("word " * 2_500), user("Go on."), assistant("word " * 2_000), user("And now?")]
    return items


def test_a_recap_that_gains_little_does_not_evict_fresh_descriptors() -> None:
    view = apply((), parse(almost_all_tail()))
    made = planned(view, view.tokens)
    assert made.record.target < made.view.tokens < made.record.budget
    assert made.record.strategies == ("collapse",)
    assert len(HANDLE.findall(shown(made.view))) == 2


@pytest.mark.parametrize("policy", ["balanced", "aggressive", "masking"])
@pytest.mark.parametrize(
    "budget", [1_500, 12_000, *(pytest.param(tokens, marks=pytest.mark.slow) for tokens in (3_000, 6_000))]
)
def test_a_trivial_gain_evicts_nothing(policy: str, budget: int) -> None:
    for count in range(4, 82, 9):
        view = apply((), parse(tool_loop(40, width=50)[:count]))
        for tokens in (budget, view.tokens):
            made = planned(view, tokens, policy, trigger="user")
            sizes = [view.tokens, *(step.tokens_after for step in made.record.steps)]
            for step, before, after in zip(made.record.steps, sizes, sizes[1:], strict=False):
                if step.name in ("recap", "drop_oldest") and before <= tokens:
                    assert before - after >= 0.05 * min(tokens, view.tokens)


@pytest.mark.slow
def test_handles_of_evicted_descriptors_are_listed_in_the_recap() -> None:
    """Every handle is in the prompt, once listed or counted, over many compactions."""
    messages = parse(tool_loop(120, width=60))
    edits: tuple[Edit, ...] = ()
    previous, known = None, set[str]()
    recaps = 0
    for count in range(4, len(messages)):
        view = apply(edits, messages[:count])
        made = planned(view, 9_000, previous=previous)
        edits, previous = edits + made.edits, made.recap
        text = shown(made.view)
        known.update(HANDLE.findall(text))
        missing = known - set(HANDLE.findall(text))
        recaps += made.record.has_recap
        left_out = made.recap.handles_left_out if made.recap else 0
        assert len(missing) == left_out
        if left_out and made.record.has_recap:
            assert f"{left_out} older handles are not listed" in text
    assert recaps > 2
    newest = handles_of(previous)[-1]
    assert newest.subject in {f"src/mod_{n}_0.py" for n in range(120)}


def test_a_recap_lists_the_evicted_handles_with_their_sources() -> None:
    """Each with the file, the command, or else the tool; not the handles that stay in the prompt."""
    items = [user("Go.")]
    for n, spec in enumerate(({"path": "src/db.py"}, {"command": "make  all"}, {}, {"command": "make last"})):
        tool = ("read_file", "bash", "list_jobs", "bash")[n]
        items += [call(f"c{n}", tool, **spec), result(f"c{n}", lines(100, word=f"v{n}_"))]
        items.append(assistant("word " * 320))
    policy = replace(get_policy("balanced"), steps=("collapse",), tail_messages=2, tail_share=0)
    view = apply((), parse([*items, assistant("Done."), user("And now?")]))
    collapsed = planned(view, 4_000, replace(policy, target=0.1), trigger="user").view
    made = planned(collapsed, collapsed.tokens - 1, replace(policy, steps=("recap",), target=0.75))
    assert made.evicted is not None
    assert [each.subject for each in made.evicted.handles] == ["src/db.py", "`make all`", "list_jobs"]


def test_listed_handles_survive_storage_and_an_edit_by_a_user() -> None:
    view = apply((), parse(tool_loop(60, width=60)))
    recap = planned(view, 6_000).recap
    assert recap is not None
    assert handles_of(recap)
    assert Recap.from_json(recap.to_json()) == recap
    listed = set(HANDLE.findall(recap.render()))
    edited = recap_parse(recap.render(), previous=recap, position=100)
    assert set(HANDLE.findall(edited.render())) == listed


def test_a_models_summary_lists_the_handles_too() -> None:
    view = apply((), parse(tool_loop(60, width=60)))
    evicted = planned(view, 6_000).evicted
    assert evicted is not None
    assert evicted.handles
    summary = Summary.of(Recap(first_turn=0, last_turn=9), evicted, COUNTER)
    text = summary.recap.render()
    assert evicted.handles[-1].handle in text
    assert evicted.handles[-1].subject in text


def test_a_summary_evicts_only_messages_that_the_model_has_read() -> None:
    """While the model writes, the user makes another request, so the earlier one is no longer protected."""
    items = tool_loop(60, width=60)
    request = "Never touch the migrations."
    items.insert(len(items) // 3 // 2 * 2 + 1, user(request))
    made = planned(apply((), parse(items)), 6_000)
    evicted = made.evicted
    assert evicted is not None
    assert request in shown(made.view)
    assert all(request not in message.text for message in evicted.messages)
    summary = Summary.of(Recap(first_turn=0, last_turn=9), evicted, COUNTER)
    later = apply((), parse([*items, user("Continue."), assistant("I will.")]))
    after = planned(later, 6_000, replace(get_policy("balanced"), steps=("recap",)), summary=summary)
    assert after.recap is summary.recap
    assert request in shown(after.view)


def test_the_tools_reduce_the_size_of_a_recap() -> None:
    """It may take a quarter of what they leave of the budget, or half of that if the target is not met."""
    messages = parse([user("Go."), *[assistant("word " * 300) for _ in range(40)], user("And now?")])
    made = planned(apply((), messages, components=Components(tools=3_000)), 8_000)
    assert made.evicted is not None
    assert made.evicted.cap_tokens == 0.5 * 0.25 * (8_000 - 3_000)


def test_a_summary_of_messages_that_the_prompt_no_longer_shows_is_not_used() -> None:
    items = tool_loop(60, width=60)
    first = planned(apply((), parse(items[:80])), 6_000)
    assert first.evicted is not None
    summary = Summary.of(Recap(first_turn=0, last_turn=9), first.evicted, COUNTER)
    made = planned(apply(first.edits, parse(items)), 6_000, previous=first.recap, summary=summary)
    assert made.record.has_recap
    assert made.recap is not summary.recap


def test_a_summarizer_is_not_needed_if_the_prompt_fits() -> None:
    """The recap is worth it, because it reaches the target, but the prompt fits without it."""
    view = apply((), parse([user("Go."), *[assistant("word " * 300) for _ in range(30)], user("And now?")]))
    for budget in (view.tokens + 10, view.tokens):
        made = planned(view, budget)
        assert made.record.has_recap
        assert not made.record.summarizer_needed
    assert planned(view, view.tokens - 10).record.summarizer_needed


def test_a_summarizer_is_not_needed_if_the_free_steps_make_the_prompt_fit() -> None:
    items = [user("Go."), call("c", "bash", command="make"), result("c", lines(400))]
    view = apply((), parse([*items, *[assistant("word " * 300) for _ in range(30)], user("And now?")]))
    made = planned(view, view.tokens - 1_000)
    assert made.record.strategies == ("collapse", "recap")
    assert not made.record.summarizer_needed


def test_a_policy_without_a_recap_never_needs_a_summarizer() -> None:
    view = apply((), parse(tool_loop(60, width=60)))
    for policy in ("baseline", "masking"):
        made = planned(view, view.tokens // 3, policy)
        assert made.record.fits
        assert made.evicted is None
        assert not made.record.summarizer_needed


def test_no_summarizer_is_needed_if_only_offloading_helps() -> None:
    items = [user("Read it."), call("c", "read_file", path="a.py"), result("c", lines(900))]
    made = planned(apply((), parse(items)), 4_000)
    assert made.record.strategies == ("offload",)
    assert made.record.fits
    assert not made.record.summarizer_needed


def test_a_recap_that_was_not_applied_is_not_continued() -> None:
    view = apply((), parse(almost_all_tail()))
    made = planned(view, view.tokens)
    assert not evicts(made)
    assert made.recap is None
    assert made.evicted is None


def test_the_recap_is_dropped_before_the_last_resort() -> None:
    """Head and tail fit; with the recap they do not."""
    free = tuple(name for name, strategy in STRATEGIES.items() if strategy.is_free)
    policy = replace(get_policy("balanced"), steps=(*free, "recap", "shed", "last_resort"))
    items = [user("Go."), *[assistant("word " * 100) for _ in range(20)]]
    items += [assistant("word " * 600), user("And now?"), assistant("word " * 300), user("Go on.")]
    made = planned(apply((), parse(items)), 1_250, policy)
    assert made.record.fits
    assert made.record.tail_verbatim
    assert "last_resort" not in made.record.strategies


def test_no_recap_is_extracted_if_its_room_leaves_too_little_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    view = apply((), parse(almost_all_tail()))
    whole = planned(view, view.tokens)
    monkeypatch.setattr("compaction.strategies.recap.extract", None)
    assert planned(view, view.tokens).edits == whole.edits
