"""Why the cost changed: the causes and their effects."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from sessions.pages.trends.cost_change import Cause
from sessions.services.spending.rollups import rollups_fill
from tests.markup import one_line
from tests.plugins.reused import reused
from tests.trends.turns import session_make, turn_make, turns_add

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
BEFORE = NOON - timedelta(days=7)
WEEK = {"first": "2026-03-08", "last": "2026-03-14"}
#: The cost of 1,000 uncached and 100 output tokens of Claude Sonnet 4.5.
COST = 4_500
USAGE = {"uncached_tokens": 1_000, "cache_read_tokens": 0, "cache_write_tokens": 0, "output_tokens": 100}


def address(name: str = "trends_cost_change") -> str:
    return reverse(name, args=["alpha"])


@pytest.fixture
def causes(viewer_client):
    def of(**more: str) -> dict[str, Cause]:
        """Return the causes by name, in the order of the page."""
        found = viewer_client.get(address(), WEEK | more).context["causes"]
        return {cause.name: cause for cause in found}

    return of


def effects(causes: dict[str, Cause]) -> dict[str, int]:
    return {name: cause.microusd for name, cause in causes.items() if cause.microusd}


@reused
def used(project):
    """Two calls in the first week; in the second, four, two of which are twice as large; a smaller agent."""
    session = session_make(project, "fix", agent="fixer")
    large = {**USAGE, "uncached_tokens": 2_000, "cost": COST + 3_000}
    turns = [turn_make(session, n, BEFORE, cost=COST, **USAGE) for n in range(2)]
    turns += [turn_make(session, n, NOON, cost=COST, **USAGE) for n in (2, 3)]
    turns += [turn_make(session, n, NOON, **large) for n in (4, 5)]
    turns_add(session, turns)
    other = session_make(project, "read", agent="reader")
    turns_add(other, [turn_make(other, n, at, cost=COST, **USAGE) for n, at in enumerate((BEFORE, NOON))])
    rollups_fill()
    return project


FIRST = {"other": "2026-03-03"}


def test_the_effects_add_up_to_the_change_of_the_cost(used, causes):
    found = causes(**FIRST)
    assert sum(effects(found).values()) == 2 * COST + 2 * 3_000
    assert list(effects(found)) == ["Calls", "Input per call"]
    values = {name: cause.values for name, cause in found.items()}
    assert values["Calls"] == "3 → 5"
    assert values["Input per call"] == "1k → 1.4k tokens"
    assert values["Caching"] == "0% → 0% hits"


def test_the_filters_apply(used, causes):
    assert effects(causes(**FIRST, agent="reader")) == {}
    assert effects(causes(**FIRST, agent="fixer"))["Calls"] > 2 * COST
    assert causes(**FIRST, agent="other") == {}


def test_the_causes_link_to_the_trends_page(used, viewer_client):
    fragment = one_line(viewer_client.get(address(), WEEK | FIRST, headers={"HX-Request": "true"}))
    assert '<a href="#prompt-sizes">Input per call</a>' in fragment
    assert re.search(r'href="\?[^"]*group=model[^"]*#groups-title">Prices and models', fragment)
    assert '>+<data value="15000" title="$0.015000">$0.015</data>' in fragment
    assert "are left out" not in fragment
    page = one_line(viewer_client.get(address(), WEEK | FIRST))
    assert re.search(rf'href="{address("trends")}\?[^"]*#prompt-sizes">Input per call', page)
    trends = viewer_client.get(address("trends"), WEEK | FIRST).text
    assert all(trends.count(f'id="{name}"') == 1 for name in ("prompt-sizes", "groups-title"))


@pytest.mark.slow
def test_a_complete_previous_period_with_a_cost_is_needed(used, viewer_client):
    def is_explained(query: dict[str, str]) -> bool:
        page = viewer_client.get(address(), query)
        explained = page.context["comparison"] is not None
        assert explained == ("There is no complete previous period" not in page.text)
        assert explained == (address() in viewer_client.get(address("trends"), query).text)
        return explained

    today = datetime.now(UTC).date()
    assert is_explained(WEEK | FIRST)
    # The first usage is on March 3, and the previous period begins on March 1.
    assert not is_explained(WEEK)
    assert not is_explained({"first": "2026-04-08", "last": "2026-04-14"})
    assert not is_explained(WEEK | {"other": str(today - timedelta(days=6))})


def test_turns_without_usage_or_price_are_left_out(used, causes, viewer_client):
    session = session_make(used, "odd", agent="fixer")
    without = dict.fromkeys(USAGE, 0)
    turns = [
        turn_make(session, 0, NOON, cost=None, model="made-up", **USAGE),
        turn_make(session, 1, NOON, cost=None, prompt_reported=None, **without),
        turn_make(session, 2, BEFORE, cost=None, prompt_reported=None, **without),
    ]
    before = effects(causes(**FIRST))
    turns_add(session, turns)
    rollups_fill()
    assert effects(causes(**FIRST)) == before
    page = one_line(viewer_client.get(address(), WEEK | FIRST))
    assert "are left out: 2 in this period, 1 in the previous one." in page


def test_costs_without_tokens_are_a_cause(used, causes):
    session = session_make(used, "priced-by-its-log", agent="openhands")
    without = dict.fromkeys(USAGE, 0)
    turns_add(session, [turn_make(session, 0, NOON, cost=70, prompt_reported=None, **without)])
    rollups_fill()
    assert effects(causes(**FIRST))["Costs reported without tokens"] == 70


def test_the_cost_is_divided_by_custom_prices(project, causes):
    """At a custom price, cached tokens are free, so that hits save the whole price of the input."""
    prices = {"uncached": 3_000_000, "cache_read": 0, "cache_write": 0, "output": 0}
    project.custom_prices = [{"model": "own", "first": "2026-01-01", "last": None, **prices}]
    project.save()
    session = session_make(project, "s")
    cached = {**USAGE, "uncached_tokens": 500, "cache_read_tokens": 500}
    turns = [
        turn_make(session, 0, BEFORE, cost=3_000, model="own", **USAGE),
        turn_make(session, 1, NOON, cost=1_500, model="own", **cached),
    ]
    turns_add(session, turns)
    rollups_fill()
    assert effects(causes(**FIRST)) == {"Caching": -1_500}


def test_another_model_is_an_effect_of_models(project, causes):
    session = session_make(project, "s")
    turns = [
        turn_make(session, 0, BEFORE, cost=COST, **USAGE),
        turn_make(session, 1, NOON, cost=1_500, model="claude-haiku-4-5", **USAGE),
    ]
    turns_add(session, turns)
    rollups_fill()
    assert effects(causes(**FIRST)) == {"Prices and models": 1_500 - COST}


def test_it_takes_few_queries(used, viewer_client, django_assert_max_num_queries):
    with django_assert_max_num_queries(8):
        assert viewer_client.get(address(), WEEK | FIRST).context["causes"]
