"""Worked examples of a compaction course: the effect of each mechanism."""

from dataclasses import replace

import pytest

from compaction.descriptors import clip
from compaction.edits import Op
from compaction.layout import split
from compaction.policy import get_policy
from compaction.rendering import render
from compaction.settings import StrategySettings
from compaction.view import apply
from compaction.view.components import Components
from tests.compaction.builders import (
    COUNTER,
    assistant,
    call,
    calls,
    faults,
    lines,
    parse,
    planned,
    result,
    system,
    user,
    view_of,
)

ERROR = "ConnectionError: could not reach db.internal:5432\n" + lines(54, word="frame")


def early_giant() -> list[dict[str, object]]:
    """17 messages; a file of some 9,400 tokens is read at once, then short turns."""
    items = [
        system(),
        user("Fix the pool."),
        call("r", "read_file", path="src/pool.py"),
        result("r", lines(618)),
    ]
    for n in range(6):
        items.append(assistant(f"Step {n}: the guard in evict() is in place, and its test passes."))
        items.append(user(f"Good, go on with step {n + 1} of the plan then."))
    return [*items, assistant("Done so far.")]


def test_example_a_the_baseline_window_drops_the_early_giant() -> None:
    view = view_of(early_giant())
    assert len(view.messages) == 17
    assert view.tokens / 8_000 == pytest.approx(1.21, abs=0.02)
    made = planned(view, 8_000, "baseline")
    assert made.record.dropped == 2
    assert made.view.tokens / 8_000 == pytest.approx(0.03, abs=0.01)
    assert made.record.head_verbatim
    assert len(made.view.messages) == 16
    assert [entry.rule for entry in made.view.entries].count("drop_oldest") == 1
    assert made.edits[0].reason == "2 oldest messages in the middle"
    items = early_giant()
    made = planned(view_of([*items[:2], assistant(lines(618)), *items[4:]]), 8_000, "baseline")
    assert made.edits[0].reason == "oldest message in the middle"
    assert made.edits[0].text == "[1 earlier message (2) is not shown.]"


def giant_last() -> list[dict[str, object]]:
    items = early_giant()
    return [*items[:2], *items[4:-1], call("r", "read_file", path="src/pool.py"), result("r", lines(618))]


def test_example_b_a_giant_in_the_tail_is_offloaded() -> None:
    view = view_of(giant_last())
    window = planned(view, 8_000, replace(get_policy("baseline"), steps=("drop_oldest",)))
    assert not window.fits
    assert window.reason
    made = planned(view, 8_000)
    assert made.fits
    assert "offload" in made.record.strategies
    assert not made.record.tail_verbatim
    shown = made.view.messages[-1].text
    assert "src/pool.py" in shown
    assert "618 lines" in shown
    assert made.edits[-1].handle is not None
    assert made.edits[-1].handle in shown


def big_middle() -> list[dict[str, object]]:
    """9 messages, 155 % of 4,000: a file, a search, and an error that is large too."""
    return [
        system(),
        user("Why does it fail?"),
        calls(("f", "read_file", {"path": "src/db.py"}), ("s", "grep", {"pattern": "retry"})),
        result("f", lines(256)),
        result("s", '{"matches": [' + ", ".join(f'"src/mod_{n}.py:{n}: retry()"' for n in range(170)) + "]}"),
        call("e", "bash", command="pytest -q"),
        result("e", ERROR),
        assistant("The database cannot be reached."),
        user("Then fix that."),
    ]


def test_example_c_the_free_steps_are_sufficient() -> None:
    view = view_of(big_middle())
    assert len(view.messages) == 9
    assert view.tokens / 4_000 == pytest.approx(1.55, abs=0.06)
    made = planned(view, 4_000)
    assert made.record.strategies == ("collapse",)
    assert made.record.collapsed == 2
    assert made.view.tokens / 4_000 == pytest.approx(0.24, abs=0.04)
    assert not made.record.summarizer_needed
    assert any(message.text == ERROR for message in made.view.messages)
    texts = [message.text for message in made.view.messages]
    assert any("256 lines" in text and "src/db.py" in text for text in texts)
    assert any('JSON object, 1 keys: "matches" (170)' in text for text in texts)


def test_example_c_a_lower_budget_needs_a_summary() -> None:
    made = planned(view_of(big_middle()), 1_000)
    assert made.record.summarizer_needed
    # The recap replaces two of the outputs that free steps had shortened.
    assert sum(edit.op is Op.REPLACE for edit in made.edits) == 3
    assert (made.record.dropped, made.record.collapsed) == (3, 1)


def test_example_d_the_minimum_number_of_messages_determines_the_tail() -> None:
    """Head 2, middle 6, tail 4: three messages meet the token floor, the fourth is for the count."""
    items = [system(), user("Fix it.")]
    items += [
        call("a", "read_file", path="a.py"),
        result("a", lines(365)),
        assistant("Read."),
        user("Next."),
        assistant("Thinking."),
        user("Go on."),
        assistant("One."),
        user("Two."),
        assistant(lines(160)),
        user("Three."),
    ]
    view = view_of(items)
    layout = split(view, StrategySettings(tail_share=0.25, tail_messages=4), budget_tokens=8_000)
    assert (layout.head_end, layout.tail_start - layout.head_end, len(items) - layout.tail_start) == (2, 6, 4)
    assert layout.bound == "messages"
    made = planned(view, 8_000, trigger="user")
    assert made.record.head_verbatim
    assert made.record.tail_verbatim
    assert [new is old for new, old in zip(made.view.messages[-4:], view.messages[-4:], strict=True)] == [
        True
    ] * 4


def test_the_head_extends_to_the_task_that_follows_what_the_agent_inserted() -> None:
    notes = [
        user("<session_context>macOS</session_context>"),
        user("<system-reminder>Be brief.</system-reminder>"),
    ]
    rest = [assistant("Yes."), user("Go on."), assistant("Done."), user("Thanks.")]
    settings = StrategySettings(tail_share=0.01, tail_messages=1)
    for items, head in (
        ([system(), *notes, user("Fix it."), *rest], 4),
        ([system(), *notes, *rest], 2),
        ([system(), user("Fix it."), *notes, *rest], 2),
    ):
        assert split(view_of(items), settings, budget_tokens=8_000).head_end == head


def test_example_e_the_tail_never_begins_with_a_tool_result() -> None:
    items = [system(), user("Fix it."), assistant("First."), user("Then?")]
    items += [
        calls(("a", "bash", {"command": "ls"}), ("b", "bash", {"command": "pwd"})),
        result("a", "x"),
        result("b", "y"),
        assistant("Seen."),
        user("And?"),
    ]
    layout = split(view_of(items), StrategySettings(tail_share=0.25, tail_messages=4), budget_tokens=10)
    assert layout.tail_start == 4
    assert layout.snapped == 1


def test_example_f_components_are_shed_in_order() -> None:
    items = [system(), user("Fix it."), assistant(lines(40)), user("More."), assistant("Yes."), user("Now.")]
    policy = replace(get_policy("balanced"), steps=("shed",), tail_messages=1, tail_share=0)
    messages = parse(items)

    def order(budget: int) -> list[str]:
        view = apply((), messages, components=Components(system=0, tools=900, memory=500))
        edits = planned(view, budget, policy).edits
        return ["history" if edit.op == "evict" else edit.text for edit in edits]

    assert order(2_000) == ["history"]
    assert order(1_400) == ["history", "memory"]
    assert order(600) == ["history", "memory", "tools"]


def test_example_g_a_clip_keeps_more_head_than_tail() -> None:
    text = lines(400)
    shown = clip(text, cap=1_500, head_share=0.6, handle="h_1", counter=COUNTER)
    head, _, rest = shown.partition("[…")
    marker, _, tail = rest.partition("]")
    assert text.startswith(head.rstrip("\n"))
    assert text.endswith(tail.lstrip("\n"))
    assert len(head) / (len(head) + len(tail)) == pytest.approx(0.6, abs=0.03)
    assert COUNTER.count(shown) <= 1_500
    elided = COUNTER.count(text) - COUNTER.count(head) - COUNTER.count(tail)
    assert int(marker.split()[0]) == pytest.approx(elided, abs=2)
    assert "h_1" in marker


def reads(*contents: str) -> list[dict[str, object]]:
    """The same file read several times, followed by a tail that contains the last read."""
    items = [system(), user("Look at the settings.")]
    for n, content in enumerate(contents):
        items += [call(f"r{n}", "read_file", path="config.yaml"), result(f"r{n}", content)]
    return [*items, assistant("I see."), user("Go on.")]


def test_example_h_without_a_change_older_reads_point_to_the_newest() -> None:
    content = lines(150)
    made = planned(view_of(reads(content, content, content)), 7_500, trigger="user")
    shown = [message.text for message in made.view.messages if message.tool_results]
    assert shown[2] == content
    assert all("Same output as in message 7" in text for text in shown[:2])
    assert made.record.strategies[0] == "dedupe"


def test_example_h_after_a_change_stale_reads_are_superseded() -> None:
    contents = [lines(150, word=word) for word in ("old", "mid", "new")]
    made = planned(view_of(reads(*contents)), 7_500, trigger="user")
    shown = [message.text for message in made.view.messages if message.tool_results]
    assert shown[2] == contents[2]
    assert all("config.yaml" in text and "superseded" in text for text in shown[:2])


def test_example_h_a_search_in_a_file_is_not_superseded_by_a_change() -> None:
    found = [call("s", "grep", pattern="value", path="config.yaml"), result("s", lines(60))]
    change = [call("e", "edit_file", path="config.yaml", old="1", new="2"), result("e", "ok")]
    made = planned(view_of([*reads()[:2], *found, *change, *reads(lines(150))[2:]]), 7_500, trigger="user")
    assert made.record.strategies == ("collapse",)


def test_outputs_with_the_same_text_and_images_are_not_duplicates() -> None:
    items = [user("Does the page look right?")]
    for n in range(3):
        source = {"type": "base64", "media_type": "image/png", "data": f"iVBORw0KGgo{n}"}
        content = [{"type": "text", "text": lines(10)}, {"type": "image", "source": source}]
        use = {"type": "tool_use", "id": f"c{n}", "name": "screenshot", "input": {}}
        shown = {"type": "tool_result", "tool_use_id": f"c{n}", "content": content}
        items += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [shown]}]
    items += [assistant("It does."), user("Go on."), assistant("Which page?"), user("The next one.")]
    policy = replace(get_policy("balanced"), steps=("dedupe",))
    made = planned(view_of(items, "anthropic"), 20_000, policy, trigger="user")
    assert made.edits == ()


def thought(n: int) -> list[dict[str, object]]:
    """A call with the thinking before it, and its result."""
    thinking = {"type": "thinking", "thinking": f"Thought {n}. " + "word " * 100, "signature": "sig"}
    use = {"type": "tool_use", "id": f"c{n}", "name": "bash", "input": {}}
    shown = {"type": "tool_result", "tool_use_id": f"c{n}", "content": "ok"}
    return [{"role": "assistant", "content": [thinking, use]}, {"role": "user", "content": [shown]}]


def test_thinking_is_removed_before_the_open_tool_loop_only() -> None:
    items = [user("Test it."), *thought(0), assistant("It works."), user("Test the rest.")]
    for n in range(1, 12):
        items += thought(n)
    policy = replace(get_policy("balanced"), steps=("clear_thinking",))
    made = planned(view_of(items, "anthropic"), 4_000, policy, trigger="user")
    assert [(edit.position, edit.op) for edit in made.edits] == [(1, Op.STRIP)]


def test_thinking_stays_without_the_step_that_removes_it() -> None:
    large = thought(1)
    large[1]["content"][0]["content"] = lines(150)  # type: ignore[index]
    items = [user("Test it."), *thought(0), *large, assistant("It works."), user("Go on."), *thought(2)]
    policy = replace(get_policy("balanced"), steps=("collapse",))
    made = planned(view_of(items, "anthropic"), 4_000, policy, trigger="user")
    assert [(edit.position, edit.op) for edit in made.edits] == [(4, Op.REPLACE)]


@pytest.mark.parametrize("budget", [8_000, 4_000, 2_000, 500, 100])
@pytest.mark.parametrize("policy", ["baseline", "masking", "balanced", "aggressive"])
def test_every_example_is_valid_at_every_budget(policy: str, budget: int) -> None:
    for items in (early_giant(), giant_last(), big_middle(), reads(lines(90), lines(90))):
        made = planned(view_of(items), budget, policy)
        for format in ("anthropic", "openai"):
            assert faults(render(made.view.messages, format=format).messages, format) == []
        assert made.fits == (made.view.tokens <= budget)
        assert made.fits or made.reason
