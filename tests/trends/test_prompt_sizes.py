"""Percentiles of the prompt size over time, and saved presets of the trends page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from sessions.models import SavedView
from sessions.services.spending.rollups import rollups_fill
from tests.markup import address
from tests.plugins.reused import reused
from tests.trends.turns import session_make, turn_make, turns_add

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
MARCH = {"first": "2026-03-01", "last": "2026-03-31"}


@reused
def used(project):
    """A hundred prompts of 1k to 97k and 200k tokens on one day, and one of 5k of another agent later."""
    large = session_make(project, "large", agent="large")
    sizes = [1_000 * (n + 1) if n < 97 else 200_000 for n in range(100)]
    turns_add(large, [turn_make(large, n, NOON, prompt_reported=size) for n, size in enumerate(sizes)])
    small = session_make(project, "small", agent="small")
    later = NOON + timedelta(days=3)
    unreported = turn_make(small, 1, later, prompt_reported=None)
    turns_add(small, [turn_make(small, 0, later, prompt_reported=5_000), unreported])
    rollups_fill()


def test_percentiles_by_period_and_filter(viewer_client, used):
    first, second = viewer_client.get(address("trends_prompts"), MARCH).context["sizes"]
    assert (first.calls, second.calls) == (100, 1)
    for found, expected in ((first.p50, 50_000), (first.p90, 90_000), (first.p99, 200_000)):
        assert found == pytest.approx(expected, rel=0.1)
    assert second.p50 == second.p99 == pytest.approx(5_000, rel=0.1)
    (only,) = viewer_client.get(address("trends_prompts"), MARCH | {"agent": "small"}).context["sizes"]
    assert only.calls == 1
    (month,) = viewer_client.get(address("trends_prompts"), MARCH | {"bucket": "month"}).context["sizes"]
    assert month.calls == 101
    drawn = viewer_client.get(address("trends_prompts"), MARCH).context["series"]
    assert len(drawn["buckets"]) == 31
    assert [value for value in drawn["series"][1]["values"] if value] == [first.p90, second.p90]


def test_the_page_reports_missing_usage(viewer_client, used):
    page = viewer_client.get(address("trends_prompts"), {"first": "2025-03-01", "last": "2025-03-02"})
    assert "No calls in this period reported their usage." in page.text


@pytest.mark.slow
def test_a_preset_follows_today_or_keeps_its_dates(viewer_client, member_client, used):
    query = "first=2026-03-01&last=2026-03-14&agent=large&group=model"
    preset = {"name": "Large, two weeks", "query": query, "relative": "on"}
    moved = viewer_client.post(address("trends_preset_create"), preset).url
    page = viewer_client.get(moved)
    span = page.context["parameters"].current.span
    assert span.days == 14
    assert span.last == timezone.now().date()
    assert page.context["parameters"].query_string().startswith("days=14")
    assert page.context["parameters"].filters == {"agent": "large"}
    viewer_client.post(address("trends_preset_create"), {"name": "Fixed", "query": query})
    assert "Large, two weeks" in viewer_client.get(address("trends")).text
    assert "Large, two weeks" not in member_client.get(address("trends")).text
    assert "Large, two weeks" not in viewer_client.get(address("sessions")).text
    fixed = SavedView.objects.get(name="Fixed")
    found = viewer_client.get(f"{address('trends')}?{fixed.query}").context["parameters"].current.span
    assert (found.first.isoformat(), found.last.isoformat()) == ("2026-03-01", "2026-03-14")
    assert member_client.post(address("trends_preset_delete", fixed.pk)).status_code == 404
    current = f"http://testserver{address('trends')}?days=7"
    forget = address("trends_preset_delete", fixed.pk)
    assert viewer_client.post(forget, headers={"Referer": current}).url == current
    assert not SavedView.objects.filter(name="Fixed").exists()


def test_a_change_of_dates_replaces_the_days_of_a_preset(viewer_client, used):
    page = viewer_client.get(address("trends"), {"days": 7, "first": "2026-03-01", "last": "2026-03-02"})
    assert page.context["parameters"].current.span.days == 2
    assert "days=" not in page.context["parameters"].query_string()
    last_month = next(
        query
        for name, query, _ in viewer_client.get(address("trends"), {"days": 7}).context["presets"]
        if name == "Last month"
    )
    assert "days=" not in last_month
