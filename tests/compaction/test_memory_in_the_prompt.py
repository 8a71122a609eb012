"""Working memory in compacted prompts: under every policy, current, counted, and shed last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from compaction.dialects import DIALECTS
from compaction.edits import Edit, Op
from compaction.messages import Message
from compaction.planning.pipeline import Plan, PlanRequest, plan
from compaction.planning.record import PlanState
from compaction.policy import PRESETS, Budget, Policy, get_policy
from compaction.rendering import render
from compaction.sizes.breakdown import TokenBreakdown
from compaction.sizes.tokens import MESSAGE_OVERHEAD
from compaction.validation import validate
from compaction.view import View, apply, revert
from compaction.view.components import Components
from tests.compaction.builders import COUNTER, assistant, call, dialogue, lines, parse, result, system, user

MEMORY = "[Working memory]\nDecisions:\n- parcels over 30 kg go by freight"
NEWER = f"{MEMORY}\n- the tariff of 2027 applies"
COMPACTING = [name for name in PRESETS if name != "off"]


def planned(view: View, budget: int, *, policy: Policy | str = "balanced", memory: str = MEMORY) -> Plan:
    request = PlanRequest(
        view=view,
        policy=get_policy(policy) if isinstance(policy, str) else policy,
        counter=COUNTER,
        budget=Budget(input_tokens=budget),
        trigger="hard",
        memory_text=memory,
    )
    return plan(request)


def texts(view: View) -> list[str]:
    return [message.text for message in view.prompt_messages]


def grown(messages: Sequence[Message], turns: int) -> tuple[Message, ...]:
    """Return the messages followed by more turns, with large outputs."""
    new = parse(dialogue(turns, 120))[2:]
    return (*messages, *(replace(m, position=len(messages) + n) for n, m in enumerate(new)))


@pytest.mark.parametrize("policy", COMPACTING)
def test_every_policy_shows_the_memory_after_the_first_request(policy: str) -> None:
    messages = parse(dialogue(40))
    made = planned(apply((), messages), 2_000, policy=policy)
    shown = texts(made.view)
    assert shown.count(MEMORY) == 1
    assert shown[:2] == [message.text for message in messages[:2]]
    assert shown[2] == MEMORY
    assert made.record.head_verbatim
    assert made.record.tail_verbatim
    assert made.fits


@pytest.mark.parametrize("format", ["anthropic", "openai"])
def test_system_messages_after_the_first_request_stay_where_the_provider_accepts_them(format: str) -> None:
    """Anthropic requires an answer after them. The messages before it are compacted as all others."""
    task, skills = user("Read all files."), system("These skills are available: review.")
    talk = [each for n in range(12) for each in (assistant(lines(50, word=f"word{n}")), user("Go on."))]
    items = [task, skills, *talk, assistant("Done."), user(lines(200))]
    items += [assistant("I see."), user("Go on."), assistant("Yes.")]
    first = planned(apply((), parse(items, format)), 7_000)
    second = planned(apply(first.view.edits, parse([*items, *items[-2:], *items[-2:]], format)), 7_000)
    for made in (first, second):
        shown = made.view.prompt_messages
        at = texts(made.view).index(skills["content"])
        if format == "anthropic":
            assert [message.role for message in shown[at - 1 : at + 2]] == ["user", "system", "assistant"]
            assert texts(made.view)[:2] == [task["content"], MEMORY]
        else:
            assert texts(made.view)[:3] == [task["content"], skills["content"], MEMORY]
        assert made.record.head_verbatim
    assert lines(200) in texts(first.view)
    assert lines(200) not in texts(second.view)


@pytest.mark.parametrize("policy", COMPACTING)
@pytest.mark.parametrize("format", DIALECTS)
def test_it_is_valid_and_counted(policy: str, format: str) -> None:
    view = planned(apply((), parse(dialogue(40))), 2_000, policy=policy).view
    prompt = render(view.prompt_messages, format=format)
    assert validate(prompt.messages, format, system=prompt.system) == ()
    assert view.components.memory == COUNTER.count(MEMORY) + MESSAGE_OVERHEAD
    assert view.tokens == sum(message.tokens for message in view.prompt_messages)
    assert TokenBreakdown.of_view(view).tokens["memory"] == view.components.memory
    assert TokenBreakdown.of_view(view).total == view.tokens


def test_a_compaction_that_stops_at_free_steps_refreshes_it() -> None:
    messages = parse(dialogue(40))
    first = planned(apply((), messages), 2_000)
    more = grown(messages, 8)
    second = planned(apply(first.edits, more), 20_000, memory=NEWER)
    assert not {"recap", "drop_oldest", "shed", "last_resort"} & set(second.record.strategies)
    assert [text for text in texts(second.view) if "[Working memory]" in text] == [NEWER]
    stored = apply((*first.edits, *second.edits), more)
    assert (stored.prompt_messages, stored.tokens) == (second.view.prompt_messages, second.view.tokens)
    assert second.record.tokens_rebilled == sum(m.tokens for m in second.view.prompt_messages[2:])


def test_an_emptied_memory_leaves_the_prompt() -> None:
    messages = parse(dialogue(40))
    first = planned(apply((), messages), 2_000)
    second = planned(apply(first.edits, grown(messages, 8)), 20_000, memory="")
    assert not any("[Working memory]" in text for text in texts(second.view))
    assert second.view.components.memory == 0


def test_reverting_restores_the_memory_of_the_previous_compaction() -> None:
    messages = grown(parse(dialogue(40)), 8)
    first = planned(apply((), parse(dialogue(40))), 2_000)
    second = planned(apply(first.edits, messages), 20_000, memory=NEWER)
    edits: tuple[Edit, ...] = (*first.edits, *second.edits)
    assert MEMORY in texts(apply(revert(edits, second.edits), messages))
    assert not any("[Working memory]" in text for text in texts(apply((), messages)))


def test_a_plan_without_gain_adds_no_memory() -> None:
    made = planned(apply((), parse([system(), user("Hello."), assistant("Hi.")])), 2_000)
    assert made.edits == ()
    assert MEMORY not in texts(made.view)


@pytest.mark.parametrize("policy", PRESETS)
def test_restoring_only_to_shed_again_is_no_gain(policy: str) -> None:
    view = apply((), parse([system(), user("word " * 400)]), components=Components(system=300))
    while (made := planned(view, 100, policy=policy)).edits:
        assert made.view.tokens < view.tokens
        view = apply((*view.edits, *made.edits), view.transcript, components=view.all_components)
    assert made.record.state is PlanState.NO_GAIN
    assert not made.fits


def test_the_record_has_the_revision_of_the_memory_that_the_compaction_shows() -> None:
    def revision(view: View, text: str, budget: int = 2_000) -> int | None:
        limit = Budget(input_tokens=budget)
        request = PlanRequest(view=view, policy=get_policy("balanced"), counter=COUNTER, budget=limit)
        return plan(replace(request, memory_text=text, memory_revision=3)).record.memory_revision

    view = apply((), parse(dialogue(40)))
    assert revision(view, MEMORY) == 3
    assert revision(view, "") is None
    assert revision(planned(view, 2_000).view, MEMORY, budget=100_000) is None  # no compaction


def test_only_a_change_of_messages_is_an_exception() -> None:
    """The memory is shown before the tail, and the tools are shed after it."""
    items = [user("Read it."), call("c", "read_file", path="a.py"), result("c", lines(900))]
    made = planned(apply((), parse(items)), 4_000)
    assert MEMORY in texts(made.view)
    assert [(each.part, each.step) for each in made.record.exceptions] == [("tail", "offload")]
    alone = apply((), parse([system(), user("Talk.")]), components=Components(tools=900))
    made = planned(alone, 100)
    assert made.view.components.tools == 0
    assert made.record.exceptions == ()
    assert made.record.head_verbatim
    assert made.record.tail_verbatim


def test_memory_never_makes_a_prompt_exceed_its_budget() -> None:
    """Even if the policy has no step that removes it."""
    messages = parse([system(), *dialogue(6, 120)[1:]])
    policy = replace(get_policy("balanced"), steps=("collapse",), tail_messages=1)
    size = planned(apply((), messages), 4_000, policy=policy, memory="").view.tokens
    made = planned(apply((), messages), size, policy=policy)
    assert made.fits
    assert MEMORY not in texts(made.view)
    assert MEMORY in texts(planned(apply((), messages), size + 40, policy=policy).view)


def test_memory_is_shed_after_history_and_before_tools() -> None:
    messages = parse([system(), user("Talk."), assistant(lines(60)), user("Go on.")])
    kept = sum(messages[at].tokens for at in (0, 1, 3)) + 40
    memory = "m" * 400
    made = planned(
        apply((), messages, components=Components(tools=300)), kept + 300, policy="baseline", memory=memory
    )
    assert [edit.text for edit in made.edits if edit.op is Op.SHED] == ["memory"]
    assert (made.view.components.memory, made.view.components.tools) == (0, 300)
    assert made.fits
    later = planned(
        apply(made.edits, grown(messages, 20), components=Components(tools=300)), 3_000, memory=memory
    )
    assert memory in texts(later.view)
    assert later.fits
