"""Components, idle gaps, compaction markers, largest increases and most expensive calls of the chart."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from compaction.messages import Usage
from importers.base import ClientCompaction
from sessions.charts.cache import cost_share, misses
from sessions.charts.prompt_sizes import PromptSize, component_columns, idle_gaps
from sessions.models import TurnStretch
from sessions.pages.tags.figures import tokens, tokens_signed
from sessions.selectors.charts import samples as chart_samples
from sessions.selectors.charts import stretches as turn_stretches
from sessions.selectors.charts.expensive import expensive_calls
from sessions.selectors.charts.jumps import MIN_GROWTH, SHOWN, largest_jumps
from sessions.selectors.charts.stretches import largest_of
from sessions.services.spending import rollups
from sessions.services.tools.counting import session_tools_count
from tests.api.client import Api
from tests.api.talk import push, whole_turn
from tests.markup import one_line
from tests.pages.served import address, compacted_session
from tests.pages.transcripts import make_session, message, reading_turn, turn

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_components_are_columns_in_the_order_of_the_stack():
    turns = [{"user": 5, "system": 2}, {"user": 5, "system": 2, "recap": 0, "tool_outputs": 9}]
    columns = component_columns(turns)
    assert list(columns) == ["system", "user", "tool_outputs"]
    assert columns["tool_outputs"] == [0, 9]


def test_idle_gaps_are_pauses_before_a_turn():
    minutes = (0, 1, 7, 8)
    points = [PromptSize(turn=n, estimate=1, at=NOON + timedelta(minutes=m)) for n, m in enumerate(minutes)]
    assert idle_gaps(points, timedelta(minutes=5)) == [{"turn": 2, "seconds": 360}]


def chart(client, session, **query):
    return client.get(address("session_chart", session), query).json()


@pytest.mark.slow
@pytest.mark.django_db
def test_components_add_up_to_what_was_served(member_client, project, api_key):
    api = Api(api_key)
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 6_000}, "system": "Be brief."})
    for number in range(20):
        push(api, whole_turn(number))
    drawn = chart(member_client, project.agent_sessions.get())
    sums = [sum(sizes) for sizes in zip(*drawn["components"].values(), strict=True)]
    assert sums == drawn["served"]
    assert "recap" in drawn["components"]


@pytest.mark.django_db
def test_zooming_loads_a_range_of_turns(member_client, project):
    session = make_session(project, [reading_turn(n) for n in range(30)])
    drawn = chart(member_client, session, **{"from": 10, "to": 14})
    assert drawn["turns"] == [10, 11, 12, 13, 14]
    assert chart(member_client, session, **{"from": 99})["turns"] == []


@pytest.mark.django_db
def test_compaction_markers_have_details(member_client, project):
    session = compacted_session(project)
    row = session.compactions.get()
    [marker] = chart(member_client, session)["own_compactions"]
    assert marker["number"] == 1
    assert marker["turn"] == 12
    assert marker["steps"] == list(row.record["strategies"])
    assert marker["break_even_turns"] == row.record["break_even_turns"]
    assert marker["dropped"] + marker["collapsed"] > 0


@pytest.mark.slow
@pytest.mark.django_db
def test_the_largest_increase_names_its_tool_output(member_client, project, django_assert_num_queries):
    # The increase by 900 tokens is too small to be listed.
    turns = [reading_turn(n, "x y z " * {3: 300, 6: 9_000}.get(n, 9)) for n in range(12)]
    session = make_session(project, turns)
    with django_assert_num_queries(3):
        jumps = largest_jumps(session=session)
    assert [(j.turn, j.tool, j.is_output, j.position) for j in jumps] == [(6, "Read", True, 12)]
    page = one_line(member_client.get(address("session", session)))
    assert "largest message: Read output" in page
    assert address("session_turn", session, 6) in page


@pytest.mark.slow
@pytest.mark.django_db
def test_sizes_that_compaction_reduced_are_not_shown_as_the_prompt(member_client, project, api_key):
    api = Api(api_key)
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 6_000}})
    for number in range(12):
        push(api, whole_turn(number))
    push(api, [*whole_turn(12)[:-1], {"role": "user", "content": "Read this: " + "x y z " * 9_000}])
    push(api, whole_turn(13))
    session = project.agent_sessions.get()
    before, after = session.turns.filter(index__in=(12, 13)).order_by("index")
    jumps = largest_jumps(session=session)
    served = dict(session.turns.values_list("index", "prompt_served"))
    grown = {turn: size - served.get(turn - 1, 0) for turn, size in served.items()}
    largest = sorted((each for each in grown.values() if each >= MIN_GROWTH), reverse=True)[:SHOWN]
    assert [jump.growth for jump in jumps] == [grown[jump.turn] for jump in jumps] == largest
    # The message of turn 12 is larger than all that the prompt gained.
    assert after.prompt_estimate - before.prompt_estimate > jumps[0].growth
    page = one_line(member_client.get(address("session", session)))
    assert ("before compaction" in page) == any(jump.is_shortened for jump in jumps)
    assert f"~{tokens(after.prompt_served)}" in page


@pytest.mark.django_db
def test_long_answers_and_questions_are_not_outputs(project):
    long = "words " * 5_000
    turns = [
        turn(0, [message("user", "Hi.", "u0"), message("assistant", long, "a0")]),
        turn(1, [message("user", "And?", "u1"), message("assistant", "Done.", "a1")]),
        turn(2, [message("user", long + long, "u2"), message("assistant", "Done.", "a2")]),
    ]
    jumps = largest_jumps(session=make_session(project, turns))
    assert [(j.turn, j.role, j.is_output, j.tool) for j in jumps] == [
        (2, "user", False, ""),
        (1, "assistant", False, ""),
    ]


@pytest.mark.django_db
def test_new_tool_definitions_are_the_cause_of_an_increase(member_client, project, api_key):
    api = Api(api_key)
    api.post("sessions/", {"id": "s1"})
    tool = {"name": "read_file", "description": "x y z " * 900, "input_schema": {"type": "object"}}
    push(api, whole_turn(0), system="Be brief. " * 900)
    push(api, whole_turn(1))
    push(api, whole_turn(2), tools=[tool])
    session = project.agent_sessions.get()
    system, tools = (
        session.preambles.get(version=1).system_tokens,
        session.preambles.get(version=2).tools_tokens,
    )
    assert {jump.turn: jump.preamble_tokens for jump in largest_jumps(session=session)} == {
        0: system,
        2: tools,
    }
    page = one_line(member_client.get(address("session", session)))
    assert f"system prompt and tool definitions: {tokens_signed(tools)}" in page
    for index, text in (
        (0, f"system prompt {tokens_signed(system)}"),
        (2, f"tool definitions {tokens_signed(tools)}"),
    ):
        page = one_line(member_client.get(address("session_turn", session, index)))
        assert f"System prompt and tools</a>: {text}" in page
    assert "System prompt and tools</a>:" not in one_line(
        member_client.get(address("session_turn", session, 1))
    )


def priced_turn(index, *, cached, written, minutes=1):
    usage = Usage(uncached_tokens=5, cache_read_tokens=cached, cache_write_tokens=written, output_tokens=9)
    said = [message("user", f"And {index}?", f"u{index}"), message("assistant", "Done.", f"a{index}")]
    return turn(index, said, usage=usage, minutes=minutes)


@pytest.mark.django_db
def test_most_expensive_calls_explain_cache_misses(member_client, project, django_assert_max_num_queries):
    turns = [priced_turn(n, cached=20_000 + 100 * n, written=100) for n in range(9)]
    turns[0] = priced_turn(0, cached=0, written=20_000)
    late = replace(priced_turn(9, cached=0, written=30_000), at=turns[8].at + timedelta(hours=2))
    compacted = replace(
        priced_turn(10, cached=1_000, written=25_000),
        at=late.at + timedelta(minutes=1),
        client_compaction=ClientCompaction(trigger="auto", tokens_before=30_000),
    )
    session = make_session(project, [*turns, late, compacted])
    with django_assert_max_num_queries(3):
        calls = expensive_calls(session=session)
    assert [row.call.turn for row in calls[:3]] == [9, 10, 0]
    assert [bool(row.miss) for row in calls] == [True, True, False, False, False]
    assert calls[0].call.microusd == session.turns.get(index=9).cost_microusd
    page = one_line(member_client.get(address("session", session)))
    assert "Cache miss: after a pause of 2 h" in page
    assert "Cache miss: after a compaction by the client" in page
    assert "First call" in page
    session.turn_count = 8  # the last turns were pushed since the session was read
    assert [row.call.turn for row in expensive_calls(session=session)][:1] == [0]


@pytest.mark.django_db
def test_the_chart_has_cost_cache_hits_and_misses(member_client, project):
    turns = [priced_turn(n, cached=20_000 + 100 * n, written=100) for n in range(9)]
    turns[6] = replace(priced_turn(6, cached=0, written=21_000), at=turns[5].at + timedelta(minutes=31))
    session = make_session(project, turns)
    drawn = chart(member_client, session)
    assert drawn["cost"] == list(session.turns.order_by("index").values_list("cost_microusd", flat=True))
    assert drawn["cache_hits"][5:7] == [99.5, 0.0]
    [miss] = drawn["misses"]
    assert (miss["turn"], miss["cause"]) == (6, "after a pause of 31 min")
    page = one_line(member_client.get(address("session", session)))
    assert "Cost and cache" in page


@pytest.mark.slow
@pytest.mark.django_db
def test_long_sessions_have_the_same_chart_and_jumps(member_client, project, monkeypatch):
    """A worker stores what the pages of long sessions show of each stretch of turns."""
    turns = [priced_turn(n, cached=20_000 + 100 * n, written=100) for n in range(23)]
    turns[6] = replace(priced_turn(6, cached=0, written=21_000), at=turns[5].at + timedelta(minutes=31))
    turns[13] = replace(priced_turn(13, cached=0, written=22_000), model="claude-haiku-4-5")
    turns[17] = replace(turns[17], client_compaction=ClientCompaction(trigger="auto", tokens_before=9_000))
    turns[21] = replace(priced_turn(21, cached=0, written=23_000), at=turns[20].at + timedelta(minutes=9))
    session = make_session(project, [*turns, reading_turn(23, "many words " * 3_000), reading_turn(24)])

    def shown():
        drawn = [chart(member_client, session, **{"from": n, "to": 24 - n // 7}) for n in (0, 3, 5, 21)]
        same = ("misses", "idle", "compactions", "spikes", "turn_count")
        sizes = [{name: (min(c[name]), max(c[name])) for name in ("estimate", "reported")} for c in drawn]
        known = largest_of(session=session)
        most = largest_jumps(session=session, known=known), expensive_calls(session=session, known=known)
        return [{name: c[name] for name in same} for c in drawn], sizes, most

    short = shown()
    assert len(short[0][0]["misses"]) == 3
    assert all(short[2])
    for module in (chart_samples, turn_stretches, rollups):
        monkeypatch.setattr(module, "LONG", 0)
    monkeypatch.setattr(TurnStretch, "TURNS", 4)
    assert len(chart(member_client, session)["turns"]) < session.turn_count
    assert shown() == short  # computed from the turns
    rollups.rollups_fill(everywhere=True)
    assert session.turn_stretches.count() == 6
    assert shown() == short
    rollups.rollups_invalidate(session.pk)
    assert not session.turn_stretches.exists()


@pytest.mark.slow
@pytest.mark.django_db
def test_tool_outputs_by_turn_follow_compactions(member_client, project):
    texts = [reading_turn(n, "some words " * 50) for n in range(6)]
    imported = make_session(project, texts, name="imported")
    compacted = compacted_session(project, name="compacted")
    for session in (imported, compacted):
        session_tools_count(session_id=session.pk)
        drawn = chart(member_client, session)
        outputs = drawn["components"]["tool_outputs"]
        [(_, sizes)] = chart(member_client, session, tools=1)["tools"].items()
        assert sizes == outputs
        assert max(sizes) > 0
    output = {"type": "tool_result", "tool_use_id": "run", "content": "other words " * 50}
    run = {"type": "tool_use", "id": "run", "name": "Run", "input": {}}
    turns = [reading_turn(0), reading_turn(1, "some words " * 50)]
    turns.append(turn(2, [message("user", "Run it.", "u2"), message("assistant", [run], "a2")]))
    turns.append(turn(3, [message("user", [output], "u3"), message("assistant", "Done.", "a3")]))
    shrunk = replace(
        turn(4, [message("user", "Summary", "u4"), message("assistant", "Yes.", "a4")]),
        client_compaction=ClientCompaction(trigger="auto", tokens_before=900),
    )
    two = make_session(project, [*turns, shrunk], name="two")
    session_tools_count(session_id=two.pk)
    drawn = chart(member_client, two, tools=1)
    assert set(drawn["tools"]) == {"Read", "Run"}
    assert [bool(size) for size in drawn["tools"]["Run"]] == [False, False, False, True, False]
    assert drawn["tools"]["Read"][4] == 0


def call(turn, *, read=0, write=1_000, **facts):
    size = PromptSize(turn=turn, estimate=1, reported=read + write, cache_read=read, cache_write=write)
    return replace(size, **{"at": NOON + timedelta(minutes=turn), **facts})


@pytest.mark.parametrize(
    ("facts", "compactions", "text"),
    [
        ({"client_compaction": {"trigger": "auto"}}, {}, "after a compaction by the client"),
        ({}, {2: 7}, "after compaction 7"),
        ({"model": "claude-haiku-4-5"}, {}, "model changed"),
        ({"preamble": 2}, {}, "system prompt or tools changed"),
        ({"at": NOON + timedelta(minutes=7)}, {}, "after a pause of 6 min"),
        (
            {"at": NOON + timedelta(minutes=6)},
            {},
            "the beginning of the prompt changed, or the cache expired early",
        ),
    ],
)
def test_each_cache_miss_has_a_cause(facts, compactions, text):
    calls = [call(0, write=20_000), call(1, read=20_000), call(2, write=22_000, **facts)]
    [found] = misses(calls, compactions)
    assert (found.turn, found.tokens, found.text) == (2, 21_000, text)
    assert 0.3 < cost_share(calls, [found]) < 0.6


def test_no_misses_where_nothing_is_cached_or_reported():
    assert misses([call(n, write=0, reported=9_000) for n in range(3)], {}) == []
    without_usage = replace(call(1), reported=None)
    assert misses([call(0, write=20_000), without_usage, call(2, read=20_000)], {}) == []


@pytest.mark.slow
@pytest.mark.django_db
def test_a_call_after_a_compaction_links_to_it(member_client, project):
    session = compacted_session(project)
    session.turns.filter(index=11).update(cost_microusd=None)
    session.compactions.update(turn_index=9)
    session.turns.filter(index=10).update(
        cost_microusd=9_000_000, cache_read_tokens=0, cache_write_tokens=6_000
    )
    calls = expensive_calls(session=session)
    assert calls[0].miss is not None
    assert (calls[0].call.turn, calls[0].miss.compaction) == (10, 1)
    assert 11 not in {row.call.turn for row in calls}
    assert 'Cache miss: <a href="' in one_line(member_client.get(address("session", session)))


@pytest.mark.django_db
def test_no_expensive_calls_without_prices(member_client, project):
    session = make_session(project, model="nobody-knows-it", turns=[reading_turn(0)])
    session.turns.update(cost_microusd=None)
    session.cost_microusd = 0
    session.save()
    assert expensive_calls(session=session) == []
    assert "Most expensive calls" not in member_client.get(address("session", session)).text


@pytest.mark.slow
def test_turns_left_are_counted_to_the_trigger_that_will_fire(project, member_client, settings):
    readings = [reading_turn(n, f"{n}: " + "a line of a file\n" * 100) for n in range(8)]
    session = make_session(project, readings)
    session.budget_tokens = 100_000
    session.save()

    def share() -> float:
        slope = member_client.get(address("session", session)).context["slope"]
        return (session.last_prompt_tokens + slope.turns_left * slope.tokens_per_turn) / 100_000

    settings.CONTEXTAPP_ANTHROPIC_API_KEY = ""
    assert share() == pytest.approx(0.95, abs=0.02)
    settings.CONTEXTAPP_ANTHROPIC_API_KEY = "sk-test"  # a model can summarize in the background
    assert share() == pytest.approx(0.7, abs=0.02)
