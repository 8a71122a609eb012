"""What the tools of a session cost, counted by the worker."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from celery import current_app
from django.urls import reverse

from compaction.messages import Usage
from importers.base import ClientCompaction
from sessions import tasks
from sessions.models import ToolFile, ToolOutputs, ToolRollup, Turn
from sessions.selectors.tools.usage import is_counting, session_tools
from sessions.services.ingestion import json_tokens
from sessions.services.reconcile.branches import session_fork
from sessions.services.tools import counting
from sessions.services.tools.counting import session_tools_count, session_tools_reset, tools_count
from sessions.store import bodies
from tests.locking import waiting_for
from tests.pages.transcripts import make_session, message, reading_turn, turn

pytestmark = pytest.mark.django_db


def call(id, name, **arguments):
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id, text, **more):
    return {"type": "tool_result", "tool_use_id": id, "content": text, **more}


def usage(cached=1_000):
    return Usage(uncached_tokens=100, cache_read_tokens=cached, cache_write_tokens=100, output_tokens=20)


def working_turns(name="s-1"):
    """Two reads of a file and a command that fails, with a call after each. Responses are billed once."""
    reads = [call("b", "Read", file_path="x.py"), call("c", "Bash", command="ls")]
    outputs = [result("b", "one " * 300), result("c", "no such file", is_error=True)]
    contents = [
        ("Go.", [call("a", "Read", file_path="x.py")]),
        ([result("a", "one " * 300)], reads),
        (outputs, "Done."),
    ]
    turns = [
        turn(n, [message("user", asked, f"u{n}"), message("assistant", answer, f"a{n}")], usage=usage())
        for n, (asked, answer) in enumerate(contents)
    ]
    return [replace(each, response_id=f"{name}-{n}") for n, each in enumerate(turns)]


@pytest.fixture
def session(project):
    made = make_session(project, working_turns())
    session_tools_count(session_id=made.pk)
    return made


def test_names_and_paths_with_nul_are_counted(project):
    asked = turn(0, [message("assistant", [call("a", "Re\0ad", file_path="x\0.py")], "a0")])
    answered = turn(1, [message("user", [result("a", "one")], "u1")])
    made = make_session(project, [asked, answered])
    assert session_tools_count(session_id=made.pk) == 2
    assert [row.tool for row in session_tools(session=made)] == ["Read"]


def shown_positions(page):
    return [message.position for turn in page.context["turns"] for message in turn.messages]


def by_name(session):
    return {row.tool: row for row in session_tools(session=session)}


def test_calls_outputs_errors_and_repeats(session):
    read, bash = by_name(session)["Read"], by_name(session)["Bash"]
    assert (read.calls, read.outputs, read.errors, read.repeats) == (2, 2, 0, 1)
    assert (bash.calls, bash.outputs, bash.errors, bash.repeats) == (1, 1, 1, 0)
    assert read.output_tokens > 600
    outputs = ToolOutputs.objects.get(session=session)
    first = outputs.tokens[outputs.positions.index(2)]
    assert read.repeat_tokens == read.output_tokens - first
    assert read.largest_position in (2, 4)
    file = ToolFile.objects.get(session=session)
    assert (file.path, file.reads, file.last_position) == ("x.py", 2, 4)


def test_the_average_is_that_of_the_outputs(project):
    calls = [call("a", "Read", file_path="x.py"), call("b", "Read", file_path="y.py")]
    asked = turn(0, [message("assistant", calls, "a0")])
    answered = turn(1, [message("user", [result("a", "one two three")], "u1")])
    made = make_session(project, [asked, answered])
    session_tools_count(session_id=made.pk)
    [read] = session_tools(session=made)
    assert (read.calls, read.outputs) == (2, 1)
    assert read.average == read.output_tokens > 0


def test_the_input_cost_is_divided_by_tokens(session):
    """The first call reads no output; the others pay for what is in their context."""
    rows = by_name(session)
    spent = sum(row.cost_microusd for row in rows.values())
    costs = list(session.turns.order_by("index").values_list("cost_microusd", flat=True))
    assert 0 < spent < sum(costs[1:])
    assert rows["Read"].cost_microusd > 20 * rows["Bash"].cost_microusd


def test_the_rest_of_the_prompt_and_the_output_are_not_the_cost_of_a_tool(project):
    """A log may lack the system prompt and the tools; a model without a public price also has output."""
    beside = [replace(each, usage=usage(100_000)) for each in working_turns("beside")]
    made = make_session(project, beside, name="beside")
    writing = replace(usage(), output_tokens=100_000)
    in_house = {"model": "in-house", "cost_microusd": 1_000_000, "usage": writing}
    written = make_session(project, [replace(each, **in_house) for each in working_turns("in")], name="in")
    tools_count(everywhere=True)
    tokens = sum(row.output_tokens for row in session_tools(session=made))
    costs = list(made.turns.order_by("index").values_list("cost_microusd", flat=True))
    spent = sum(row.cost_microusd for row in session_tools(session=made))
    assert 0 < spent < 1.25 * tokens / 100_000 * sum(costs[1:])
    assert 0 < sum(row.cost_microusd for row in session_tools(session=written)) < 0.01 * 2_000_000


def test_counting_in_parts_has_the_same_result(project, session):
    """A log that grows is counted from where the last pass stopped."""
    parts = make_session(project, working_turns("parts")[:1], name="parts")
    session_tools_count(session_id=parts.pk)
    parts = make_session(project, working_turns("parts"), name="parts")
    session_tools_count(session_id=parts.pk)
    names = ("day", "tool", "calls", "outputs", "output_tokens", "errors", "repeats", "cost_microusd")
    sums = [sorted(ToolRollup.objects.filter(session=each).values_list(*names)) for each in (session, parts)]
    assert sums[0] == sums[1]
    assert session_tools_count(session_id=parts.pk) == 0


@pytest.mark.slow
@pytest.mark.parametrize("begins", ["task", "pass"])
def test_a_long_session_is_counted_by_several_tasks(project, monkeypatch, begins):
    made = make_session(project, [reading_turn(n) for n in range(400)])
    assert 0 < session_tools_count(session_id=made.pk, seconds=0) < made.message_count
    assert is_counting(session=made)
    monkeypatch.setattr(counting, "SLICE_SECONDS", 0)
    monkeypatch.setitem(current_app.conf, "task_always_eager", True)
    if begins == "task":
        tasks.session_tools_count(str(made.pk))  # runs the tasks that it requests
    else:
        tools_count(everywhere=True)
    assert not is_counting(session=made)
    counted = by_name(made)["Read"].outputs
    session_tools_reset(session_id=made.pk)
    assert session_tools_count(session_id=made.pk) == made.message_count
    assert by_name(made)["Read"].outputs == counted > 0


def test_outputs_that_the_client_removed_cost_nothing_more(project):
    compaction = ClientCompaction(trigger="auto", tokens_before=9_000)
    messages = [message("user", "Summary.", "u3", is_summary=True), message("assistant", "On.", "a3")]
    after = [turn(3, messages, usage=usage(100_000), compaction=compaction)]
    short = make_session(project, working_turns("short"), name="short")
    long = make_session(project, [*working_turns("long"), *after], name="long")
    tools_count(everywhere=True)
    assert by_name(long)["Read"].cost_microusd == by_name(short)["Read"].cost_microusd


def test_a_fork_counts_only_its_own_messages(project):
    parent = make_session(project, [reading_turn(n) for n in range(4)])
    child = session_fork(parent=parent, at=4, context_start=0)
    tools_count(everywhere=True)
    assert by_name(parent)["Read"].outputs == 3
    assert by_name(child) == {}
    assert not is_counting(session=child)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_messages_that_are_replaced_meanwhile_are_not_counted(project):
    made = make_session(project, working_turns())
    # The turns are read after the messages.
    with waiting_for(Turn._meta.db_table, lambda: session_tools_count(session_id=made.pk)) as counted:
        session_tools_reset(session_id=made.pk)
    assert counted.result() == 0
    assert not ToolRollup.objects.exists()
    assert session_tools_count(session_id=made.pk) == made.message_count
    assert by_name(made)["Read"].outputs == 2


class TestPages:
    def test_of_a_session(self, member_client, session, django_assert_max_num_queries):
        address = reverse("session_tools", args=[session.project.slug, session.pk])
        with django_assert_max_num_queries(12):
            page = member_client.get(address, {"sort": "errors"})
        assert [row.tool for row in page.context["rows"]] == ["Bash", "Read"]
        assert "?tool=Bash#transcript-title" in page.text
        assert "<code>x.py</code>" in page.text
        assert 'aria-sort="descending"' in page.text
        assert "every 3s" not in page.text

    def test_of_a_session_that_is_still_counted(self, member_client, project):
        waiting = make_session(project)
        address = reverse("session_tools", args=[project.slug, waiting.pk])
        assert "every 3s" in member_client.get(address).text
        tools_count(everywhere=True)
        assert "every 3s" not in member_client.get(address, headers={"HX-Request": "true"}).text

    def test_of_a_project(self, member_client, project, session, django_assert_max_num_queries):
        make_session(project, working_turns("second"), name="second")
        tools_count(everywhere=True)
        address = reverse("tools", args=[project.slug])
        with django_assert_max_num_queries(8):
            page = member_client.get(address, {"days": "all"})
        [read] = [row for row in page.context["rows"] if row.tool == "Read"]
        assert (read.calls, read.outputs) == (4, 4)
        assert "No tool calls in this period" in member_client.get(address, {"days": "7"}).text
        assert member_client.get(address, {"days": "x", "sort": "y"}).status_code == 200

    def test_tool_definitions_by_server(self, member_client, project):
        tools = [
            {"name": "Bash", "description": "Run", "input_schema": {"type": "object"}},
            {"name": "mcp__github__search", "description": "Find " * 50, "input_schema": {"type": "object"}},
        ]
        made = project.agent_sessions.create(external_id="with-tools", format="anthropic", preamble_version=1)
        made.preambles.create(version=1, from_turn=0, tools=bodies.json_bytes(tools))
        page = member_client.get(reverse("session_tools", args=[project.slug, made.pk]))
        assert [(each.server, each.tools) for each in page.context["definitions"]] == [("github", 1), ("", 1)]
        assert "1 of 1: mcp__github__search" in page.text
        # The size of the whole list, which the Prompt tab shows.
        assert page.context["definition_tokens"] == json_tokens(bodies.json_bytes(tools))
        assert "github" in member_client.get(reverse("tools", args=[project.slug])).text

    @pytest.mark.parametrize(
        ("query", "positions"),
        [
            ({"tool": "Bash"}, [4]),
            ({"tool": "Read"}, [2, 4]),
            ({"role": "user"}, [0]),
            ({"role": "assistant"}, [1, 3, 5]),
            ({"role": "tool"}, [2, 4]),
            ({"errors": "1"}, [4]),
            ({"tool": "NoSuch"}, []),
        ],
    )
    def test_filters_of_the_transcript(self, member_client, session, query, positions):
        address = reverse("session", args=[session.project.slug, session.pk])
        page = member_client.get(address, query)
        assert shown_positions(page) == positions
        blocks = [b for turn in page.context["turns"] for message in turn.messages for b in message.blocks]
        assert {block.label for block in blocks if block.kind == "result"} <= {"Read", "Bash"}

    @pytest.mark.slow
    def test_a_filtered_transcript_has_pages(self, member_client, project):
        long = make_session(project, [reading_turn(n) for n in range(50)], name="long")
        tools_count(everywhere=True)
        address = reverse("session", args=[project.slug, long.pk])
        page = member_client.get(address, {"tool": "Read"})
        shown = [shown_positions(page)]
        while older := re.search(r"[?]tool=Read&amp;before=(\d+)", page.text):
            parameters = {"tool": "Read", "before": older[1]}
            page = member_client.get(address, parameters, headers={"HX-Request": "true"})
            assert "<html" not in page.text
            shown.append(shown_positions(page))
        assert len(shown) > 1
        positions = [position for page in reversed(shown) for position in page]
        assert len(positions) == 49
        assert positions == sorted(set(positions))
