"""Rollups equal the sums of the turns to the micro-dollar, after late, repeated and deleted turns."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.db.models import F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pricing
from accounts.models import Project
from compaction.messages import Usage
from sessions.models import RollupCursor, Turn, UsageRollup
from sessions.selectors.days import Span
from sessions.selectors.trends.sums import TrendQuery, trend_total
from sessions.services.sessions.lifecycle import session_delete
from sessions.services.spending.rollups import rollups_fill, rollups_invalidate
from tests.pages.transcripts import make_session, message, reading_turn, turn
from tests.plugins.examples import examples
from tests.trends.turns import session_make, turn_make, turns_add

pytestmark = pytest.mark.django_db

START = datetime(2026, 3, 28, 20, 0, tzinfo=UTC)

#: Zones with offsets in hours, half-hours and quarter-hours, and a clock change within the period.
ZONES = [
    ZoneInfo(name) for name in ("UTC", "Asia/Kolkata", "Asia/Kathmandu", "Europe/Berlin", "Pacific/Apia")
]


def by_day_of_turns(zone: ZoneInfo) -> Counter:
    sums: Counter = Counter()
    for row in Turn.objects.filter(billed=True):
        day = (row.session_id, row.at.astimezone(zone).date(), row.model)
        for name in ("uncached_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"):
            sums[day, name] += getattr(row, name) or 0
        sums[day, "cost_microusd"] += row.cost_microusd or 0
        sums[day, "turns"] += 1
        sums[day, "unpriced_turns"] += row.prompt_reported is not None and row.cost_microusd is None
    return +sums


def by_day_of_rollups(zone: ZoneInfo) -> Counter:
    sums: Counter = Counter()
    for row in UsageRollup.objects.all():
        day = (row.session_id, row.at.astimezone(zone).date(), row.model)
        for name in (
            "uncached_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "output_tokens",
            "cost_microusd",
            "turns",
            "unpriced_turns",
        ):
            sums[day, name] += getattr(row, name)
    return +sums


def assert_same() -> None:
    for zone in ZONES:
        expected = by_day_of_turns(zone)
        assert by_day_of_rollups(zone) == expected
        assert_periods_are_same(zone, expected)


def assert_periods_are_same(zone: ZoneInfo, expected: Counter) -> None:
    """Periods consist of days in UTC, and of quarter-hours where the days of a zone differ from them."""
    project = Project.objects.get()
    days = sorted({day for (_, day, _), _ in expected})
    for first, last in itertools.combinations_with_replacement([*days[:2], *days[-2:]], 2):
        total = trend_total(
            project_id=project.pk, query=TrendQuery(span=Span(first=first, last=last, zone=zone))
        )
        for name in ("turns", "output_tokens", "cost_microusd"):
            within = [
                n for ((_, day, _), each), n in expected.items() if each == name and first <= day <= last
            ]
            assert getattr(total, name) == sum(within)


calls = st.fixed_dictionaries(
    {
        "minutes": st.integers(-3_000, 3_000),
        "model": st.sampled_from(["claude-sonnet-4-5", "gpt-5", "made-up"]),
        "cost": st.none() | st.integers(0, 10**12),
        "uncached_tokens": st.none() | st.integers(0, 500_000_000),
        "output_tokens": st.integers(0, 10_000),
        "billed": st.booleans(),
    }
)
steps = st.one_of(
    st.tuples(st.just("push"), st.integers(0, 2), st.lists(calls, min_size=1, max_size=4)),
    st.tuples(st.just("rewrite"), st.integers(0, 2), st.lists(calls, min_size=1, max_size=4)),
    st.tuples(st.just("delete"), st.integers(0, 2), st.just([])),
    st.tuples(st.just("fill"), st.just(0), st.just([])),
)


@pytest.mark.slow
@settings(
    max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(work=st.lists(steps, max_size=12))
def test_rollups_equal_the_sums_of_the_turns(project: Project, work: list) -> None:
    project.agent_sessions.all().delete()
    sessions = [session_make(project, f"s{number}") for number in range(3)]
    for kind, number, made in work:
        session = sessions[number]
        if kind == "fill":
            rollups_fill()
        elif kind == "delete":
            session_delete(session=session)
            sessions[number] = session_make(project, f"s{number}")
        elif kind == "push" or session.turn_count == 0:
            turns_add(session, turns_of(session, session.turn_count, made))
        else:
            # store the last turns again, as an import does with the end of a log
            first = max(session.turn_count - 2, 0)
            rollups_invalidate(session.pk)
            session.turns.filter(index__gte=first).delete()
            session.turn_count = first
            turns_add(session, turns_of(session, first, made))
    rollups_fill()
    assert_same()
    assert rollups_fill() == 0


def turns_of(session, first: int, made: list) -> list[Turn]:
    return [
        turn_make(session, first + offset, START + timedelta(minutes=minutes), **call)
        for offset, call in enumerate(made)
        for minutes in [call["minutes"]]
        for call in [{name: value for name, value in call.items() if name != "minutes"}]
    ]


@pytest.mark.slow
def test_a_log_with_a_changed_end_is_summed_again(project):
    usage = Usage(uncached_tokens=5, cache_read_tokens=0, cache_write_tokens=1_000, output_tokens=9)
    ends = [message("user", "Go.", "x0"), message("assistant", "Well", "x1")]
    make_session(project, [reading_turn(0), turn(1, ends, usage=usage)])
    rollups_fill()
    assert_same()
    longer = Usage(uncached_tokens=5, cache_read_tokens=0, cache_write_tokens=1_000, output_tokens=90)
    grown = [message("user", "Go.", "x0"), message("assistant", "Well, then", "x1")]
    make_session(project, [reading_turn(0), turn(1, grown, usage=longer), reading_turn(3), reading_turn(4)])
    rollups_fill()
    assert_same()
    assert Turn.objects.count() == 4


def test_a_long_session_is_summed_in_batches(project, monkeypatch):
    monkeypatch.setattr("sessions.services.spending.rollups._TURNS", 7)
    session = session_make(project, "long")
    turns_add(session, [turn_make(session, index, START + timedelta(minutes=index)) for index in range(40)])
    assert rollups_fill(most_batches=2) == 14
    assert RollupCursor.objects.get().turns == 14
    assert rollups_fill() == 26
    assert_same()


@pytest.mark.slow
def test_the_sums_of_an_earlier_version_are_calculated_again(project):
    shrunk = {"prompt_estimate": 9_000, "prompt_served": 1_000, "prompt_reported": 2_000}
    for number in range(60):
        session = session_make(project, f"s{number}", last_active_at=START)
        turns_add(session, [turn_make(session, 0, START, **shrunk)])
    rollups_fill(everywhere=True)
    expected = list(UsageRollup.objects.values_list("hidden_tokens", "saved_microusd"))
    RollupCursor.objects.update(version=0)
    UsageRollup.objects.update(
        hidden_tokens=F("hidden_tokens") + 5_000, saved_microusd=F("saved_microusd") + 9
    )
    rollups_fill(everywhere=True)
    assert list(UsageRollup.objects.values_list("hidden_tokens", "saved_microusd")) == expected
    assert_same()


def test_prompts_are_capped_at_the_context_window(project):
    session = session_make(project, "s", context_window=50_000)
    shrunk = {"prompt_estimate": 101_000, "prompt_served": 1_000, "prompt_reported": 2_000}
    turns_add(session, [turn_make(session, 0, START, **shrunk)])
    rollups_fill()
    assert UsageRollup.objects.get().hidden_tokens == 48_000


def test_content_that_the_agent_does_not_push_does_not_count_as_removed(project):
    session = session_make(project, "s")
    shrunk = {"prompt_estimate": 30_000, "prompt_served": 10_000, "prompt_reported": 52_500}
    learned = {"calibration_factor": 1.25, "calibration_overhead": 40_000}
    turns_add(session, [turn_make(session, 0, START, **shrunk, **learned)])
    rollups_fill()
    assert UsageRollup.objects.get().hidden_tokens == 20_000 * 1.25


def test_removed_tokens_are_priced_as_cached_if_the_call_read_from_the_cache(project):
    session = session_make(project, "s")
    shrunk = {"prompt_estimate": 101_000, "prompt_served": 1_000, "prompt_reported": 2_000}
    turns_add(
        session,
        [
            turn_make(session, 0, START, cache_read_tokens=1_000, **shrunk),
            turn_make(session, 1, START, cache_read_tokens=0, **shrunk),
            turn_make(session, 2, START, cache_read_tokens=0, **shrunk, model="made-up"),
            turn_make(session, 3, START, prompt_estimate=1_000, prompt_served=1_200),
        ],
    )
    rollups_fill()
    [rates, *_] = pricing.rates("claude-sonnet-4-5", START)
    cached, uncached = rates.cache_read, rates.uncached
    rows = {row.model: row for row in UsageRollup.objects.all()}
    # The provider counts twice as many tokens as the estimate.
    assert rows["claude-sonnet-4-5"].hidden_tokens == 2 * 200_000
    expected = (cached + uncached) * 200_000 * 1_000_000
    assert rows["claude-sonnet-4-5"].saved_microusd == expected
    assert Decimal("0.1") * uncached == cached
    assert (rows["made-up"].hidden_tokens, rows["made-up"].saved_microusd) == (200_000, 0)


def test_removed_tokens_are_priced_at_custom_prices(project):
    price = {"model": "made-up", "first": "2026-03-01", "last": "2026-03-28", "uncached": 2_000_000}
    project.custom_prices = [{**price, "cache_read": 500_000, "cache_write": 2_000_000, "output": 8_000_000}]
    project.save()
    session = session_make(project, "s")
    shrunk = {
        "prompt_estimate": 101_000,
        "prompt_served": 1_000,
        "prompt_reported": 1_000,
        "model": "made-up",
    }
    turns_add(
        session,
        [
            turn_make(session, 0, START, cache_read_tokens=1_000, **shrunk),
            turn_make(session, 1, START, cache_read_tokens=0, **shrunk),
            turn_make(session, 2, START + timedelta(days=1), **shrunk),
        ],
    )
    rollups_fill()
    # 100,000 tokens at $0.50 and at $2 per million. On the next day, the model has no price.
    assert sum(row.saved_microusd for row in UsageRollup.objects.all()) == 50_000 + 200_000
