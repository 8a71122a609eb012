"""The latency of calls on the trends page: percentiles of any period and group, from stored counts."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from sessions.models import AgentSession, CallHistogram, Turn
from sessions.services.sessions.lifecycle import session_delete
from sessions.services.spending.rollups import rollups_fill, rollups_invalidate
from tests.markup import one_line
from tests.plugins.reused import reused
from tests.trends.turns import session_make, turn_make, turns_add

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
MARCH = {"first": "2026-03-01", "last": "2026-03-31"}


def trends(client, **query):
    return client.get(reverse("trends", args=["alpha"]), MARCH | query)


@reused
def slow(project) -> AgentSession:
    """100 calls of the agent `slow`, from 100 ms to 10 s, and their first tokens after a tenth of that."""
    session = session_make(project, "slow", agent="slow", tags=["a", "b"])
    turns = [
        turn_make(
            session, n, NOON + timedelta(minutes=n), duration_ms=100 * (n + 1), first_token_ms=10 * (n + 1)
        )
        for n in range(100)
    ]
    turns_add(session, turns)
    return session


@reused
def fast(project) -> AgentSession:
    """100 calls of the agent `fast`, of which six take five seconds."""
    session = session_make(project, "fast", agent="fast")
    turns_add(session, [turn_make(session, n, NOON, duration_ms=50 if n < 94 else 5_000) for n in range(100)])
    return session


def test_percentiles_are_accurate_to_a_tenth(viewer_client, slow):
    rollups_fill()
    latency = trends(viewer_client).context["latency"]
    for found, scale in ((latency.duration, 100), (latency.first_token, 10)):
        assert found.calls == 100
        assert found.p50 == pytest.approx(50 * scale, rel=0.1)
        assert found.p95 == pytest.approx(95 * scale, rel=0.1)


@pytest.mark.slow
def test_groups_have_their_own(viewer_client, slow, fast):
    rollups_fill()
    rows = {row.name: row.latency for row in trends(viewer_client, group="agent").context["rows"]}
    assert rows["fast"].duration.p50 == pytest.approx(50, rel=0.1)
    assert rows["fast"].duration.p95 == pytest.approx(5_000, rel=0.1)
    assert rows["fast"].first_token is None
    assert rows["slow"].duration.p50 == pytest.approx(5_000, rel=0.1)
    assert trends(viewer_client, group="agent", agent="fast").context["latency"].duration.calls == 100
    tags = {row.name: row.latency for row in trends(viewer_client, group="tag").context["rows"]}
    assert tags["a"] == tags["b"] == rows["slow"]


@pytest.mark.slow
def test_the_page_shows_it_only_if_it_was_reported(project, viewer_client, fast):
    Turn.objects.update(duration_ms=None)
    rollups_fill()
    assert "Latency" not in trends(viewer_client).text
    Turn.objects.update(duration_ms=4_210)
    rollups_invalidate(fast.pk)
    rollups_fill()
    page = one_line(trends(viewer_client))
    assert "Latency" in page
    assert "<small>median</small>" in page
    assert "first token" not in page


def test_a_period_without_calls_has_none(viewer_client, slow):
    rollups_fill()
    april = {"first": "2026-04-01", "last": "2026-04-30"}
    assert not trends(viewer_client, **april).context["latency"].is_reported


def test_the_csv_has_it_by_bucket_and_group(viewer_client, slow, fast):
    rollups_fill()
    address = reverse("trends_csv", args=["alpha"])
    text = viewer_client.get(address, MARCH | {"group": "agent", "bucket": "month"}).content.decode()
    rows = {row["agent"]: row for row in csv.DictReader(io.StringIO(text))}
    assert int(rows["slow"]["duration_p95_ms"]) == pytest.approx(9_500, rel=0.1)
    assert int(rows["slow"]["first_token_p50_ms"]) == pytest.approx(500, rel=0.1)
    assert (rows["fast"]["first_token_p50_ms"], rows["fast"]["first_token_p95_ms"]) == ("", "")


@pytest.mark.slow
def test_turns_are_counted_once_and_deleted_with_their_session(project, viewer_client, slow, fast):
    for _ in range(2):
        rollups_fill()
    turns_add(slow, [turn_make(slow, 100, NOON, duration_ms=0), turn_make(slow, 101, NOON, billed=False)])
    Turn.objects.filter(index=101).update(duration_ms=7)
    rollups_fill()
    assert trends(viewer_client).context["latency"].duration.calls == 201
    session_delete(session=slow)
    assert set(CallHistogram.objects.values_list("session", flat=True)) == {fast.pk}
