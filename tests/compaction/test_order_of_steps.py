"""Which steps of a policy run, and what a plan reports about them."""

from __future__ import annotations

import pytest

from compaction.edits import Edit, Op
from compaction.planning.pipeline import Plan
from compaction.planning.record import PlanState
from compaction.policy import Policy
from compaction.sizes.calibration import Calibration
from compaction.view import View, apply
from compaction.view.components import MEMORY, TOOLS, Components
from tests.compaction.builders import JSON, assistant, call, lines, parse, planned, result, user, view_of

LONG = "word " * 2_000


def policy_of(*steps: str, target: float = 0.4, **settings: object) -> Policy:
    """Return a policy with these steps. Its tail has two messages."""
    tail = {"tail_messages": 2, "tail_share": 0.0}
    return Policy.from_json({"steps": steps, "target": target, "hard": 1.0, **tail, **settings})


def run(view: View, *steps: str, budget: int = 0, target: float = 0.4, **options: object) -> Plan:
    """Plan these steps at the request of a user. By default, the budget is the size of the prompt."""
    return planned(view, budget or view.tokens, policy_of(*steps, target=target), trigger="user", **options)


def outputs(*texts: str, tool: str = "bash", **arguments: str) -> list[JSON]:
    """Return a task, calls with these outputs, and the tail."""
    items = [user("Fix it.")]
    for n, text in enumerate(texts):
        items += [call(f"c{n}", tool, **arguments), result(f"c{n}", text)]
    return [*items, assistant("Done."), user("And now?")]


def test_no_step_runs_after_the_target_is_reached() -> None:
    first, second = lines(100), lines(100, word="other")
    view = view_of(outputs(first, first, second, second, tool="read_file", path="src/pool.py"))
    assert run(view, "dedupe", "supersede", target=0.6).record.strategies == ("dedupe",)
    assert run(view, "dedupe", "supersede", target=0.3).record.strategies == ("dedupe", "supersede")


def test_a_free_step_runs_for_any_gain() -> None:
    text = lines(6)
    view = view_of(outputs(LONG, text, text))
    made = run(view, "dedupe")
    assert (made.record.trigger, made.record.strategies) == ("user", ("dedupe",))
    assert 0 < made.record.tokens_saved < 0.05 * view.tokens


def test_a_short_output_that_is_repeated_stays() -> None:
    """Pointing to the later one would save only a few tokens."""
    short = "v" * 199
    assert run(view_of(outputs(LONG, short, short)), "dedupe").edits == ()
    assert run(view_of(outputs(LONG, short + "v", short + "v")), "dedupe").edits


def test_history_is_shed_only_if_that_saves_tokens() -> None:
    """A marker would take more than the short answer."""
    items = [user("Fix it."), assistant("Yes."), assistant("Done."), user("And now?")]
    view = apply((), parse(items), components=Components(memory=500))
    made = run(view, "shed", budget=view.tokens - 1)
    assert [(edit.op, edit.text) for edit in made.edits] == [(Op.SHED, MEMORY)]
    assert made.fits


CHANGE = {"path": "a.py", "old": "1", "new": "2"}


@pytest.mark.parametrize(
    ("later", "text", "verbs"),
    [
        (call("c", "edit_file", **CHANGE), "ok", ["edited", "edited"]),
        (call("c", "write_file", path="a.py", content="x"), "ok", ["written", "written"]),
        (call("c", "edit_file", **CHANGE), "Error: no such text", ["read again"]),
        (call("c", "edit_file", **CHANGE | {"path": "b.py"}), "ok", ["read again"]),
        (call("c", "read_file", path="a.py", offset=5, limit=9), lines(9), ["read again"]),
        (call("c", "read_file", path="a.py"), lines(9), ["read again", "read again"]),
        (call("c", "read_file", path="a.py"), "File not found: a.py", ["read again"]),
        (call("c", "read_file", path="a.py"), "ENOENT: no such file or directory", ["read again"]),
        (call("c", "bash", command="make"), lines(9), ["read again"]),
    ],
)
def test_a_read_is_superseded_by_a_later_read_or_change_of_the_file(
    later: JSON, text: str, verbs: list[str]
) -> None:
    items = outputs(lines(50), lines(60), tool="read_file", path="a.py")
    made = run(view_of([*items[:-2], later, result("c", text), *items[-2:]]), "supersede")
    assert [edit.position for edit in made.edits] == [2, 4][: len(verbs)]
    assert [edit.text.partition("(")[2].partition(")")[0] for edit in made.edits] == verbs


@pytest.mark.parametrize("step", ["shed", "last_resort"])
def test_the_last_steps_do_not_change_a_prompt_that_just_fits(step: str) -> None:
    view = apply((), parse(outputs(LONG)), components=Components(tools=100, memory=100))
    assert run(view, step).edits == ()
    assert run(view, step, budget=view.tokens - 1).edits


def short_middle() -> View:
    """Two messages may be evicted, each with less than 5% of the prompt."""
    return view_of([user("Fix it."), *[assistant("note " * 100)] * 2, user("And now?"), assistant(LONG)])


def test_messages_of_a_prompt_that_fits_are_evicted_only_for_a_minimum_gain(
    subtests: pytest.Subtests,
) -> None:
    """Once a step gains too little, no later step evicts: it would keep even less of the messages."""
    view = short_middle()
    for case, made, strategies in (
        ("enough", run(view, "drop_oldest", target=0.9), ("drop_oldest",)),
        ("too little", run(view, "drop_oldest", target=0.98), ()),
        ("an earlier step gains too little", run(view, "recap", "drop_oldest", target=0.9), ()),
        (
            "the prompt does not fit",
            run(view, "drop_oldest", target=0.99, budget=view.tokens - 1),
            ("drop_oldest",),
        ),
    ):
        with subtests.test(case):
            assert made.record.strategies == strategies
            assert made.record.state is (PlanState.DONE if strategies else PlanState.NO_GAIN)
            assert made.fits


def test_a_recap_replaces_descriptors_only_if_that_saves_more_than_their_size() -> None:
    view = view_of(outputs(*[lines(30, word=f"value{n}_") for n in range(12)]))
    policy = policy_of("collapse", "recap", target=0.05, recap_tokens_max=250, collapse_tokens=400)
    made = planned(view, view.tokens, policy, trigger="user")
    assert made.record.strategies == ("collapse",)
    assert 0.05 * view.tokens < sum(edit.tokens_after for edit in made.edits) - policy.recap_tokens_max
    assert planned(made.view, made.view.tokens - 1, policy, trigger="user").record.has_recap


def test_a_plan_that_restores_a_component_may_make_the_prompt_longer() -> None:
    items = [user("Fix it."), assistant("Hm."), *outputs(lines(100))[1:]]
    shed = [Edit(strategy="shed", op=Op.SHED, position=0, end=0, text=TOOLS, tokens_before=5_000)]
    without_tools = apply(shed, parse(items), components=Components(tools=5_000))
    made = run(without_tools, "collapse", budget=20_000)
    assert (made.record.state, made.view.components.tools) == (PlanState.DONE, 5_000)
    assert made.record.tokens_saved < 0
    memory = {"memory_text": LONG, "memory_revision": 3, "sheddable": (MEMORY,)}
    made = run(view_of(items), "collapse", budget=20_000, **memory)
    assert (made.record.state, made.record.memory_revision) == (PlanState.DONE, 3)
    assert made.record.tokens_saved < 0 < made.view.components.memory


def test_a_component_that_still_does_not_fit_is_not_restored() -> None:
    items = [user("Fix it."), assistant("Hm."), user("And now?")]
    shed = [Edit(strategy="shed", op=Op.SHED, position=0, end=0, text=TOOLS, tokens_before=5_000)]
    view = apply(shed, parse(items), components=Components(tools=5_000))
    made = run(view, "shed", budget=1_000, memory_revision=3)
    assert made.view is view
    assert (made.record.state, made.record.strategies) == (PlanState.NO_GAIN, ())
    assert made.record.memory_revision is None


def test_the_reason_names_what_leaves_no_room(subtests: pytest.Subtests) -> None:
    items = [user("Fix it."), call("c", "write_file", text=None, path="a.py", content="x" * 8_000)]
    steps = ("drop_oldest", "last_resort")
    with_tools = apply((), parse(items), components=Components(tools=600))
    for case, made, reason in (
        ("nothing", run(view_of(items), *steps, budget=5_000), ""),
        (
            "overhead",
            run(view_of(items), *steps, budget=500, calibration=Calibration(overhead=500)),
            "the agent sends but does not push alone takes 500",
        ),
        (
            "components",
            run(with_tools, *steps, budget=500),
            "the system prompt, tools and memory alone take 600",
        ),
        (
            "policy",
            run(view_of(items), "drop_oldest", budget=500),
            "has no step that could shorten it further",
        ),
        ("open call", run(view_of(items), *steps, budget=500), "no content is left that may be shortened"),
    ):
        with subtests.test(case):
            assert made.reason.endswith(reason)
            assert made.fits == (not made.reason) == (not reason)
