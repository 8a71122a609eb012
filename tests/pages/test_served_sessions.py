"""Pages of a session that was pushed through the API and compacted by contextapp."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from sessions.models import AgentSession, Compaction
from sessions.selectors.token_budgets import Limit, limit_of
from tests.api.client import Api
from tests.api.talk import push, whole_turn
from tests.markup import one_line
from tests.pages.transcripts import make_session
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

BUDGET = 6_000


@reused
def session(api_key: str, project: Any) -> AgentSession:
    """Twenty turns pushed through the API, with a budget for about ten of them."""
    api = Api(api_key)
    api.post("sessions/", {"id": "s1", "model": "claude-sonnet-4-5", "budget": {"input_tokens": BUDGET}})
    for number in range(20):
        push(api, whole_turn(number))
    made: AgentSession = project.agent_sessions.get(external_id="s1")
    return made


def shown(client: Client, session: AgentSession, page: str = "session_chart") -> Any:
    return client.get(reverse(page, args=[session.project.slug, session.pk]))


def test_the_chart_shows_what_was_served_within_the_budget(member_client, session):
    chart = shown(member_client, session).json()
    assert chart["budget"] == BUDGET
    assert max(chart["served"]) <= BUDGET < max(chart["estimate"])


def test_the_chart_shows_the_budget_that_applied_to_each_turn(api_key, member_client, session):
    Api(api_key).patch("sessions/s1/", {"budget": {"input_tokens": 2 * BUDGET}})
    push(Api(api_key), whole_turn(20))
    chart = shown(member_client, session).json()
    assert chart["budget"] == 2 * BUDGET
    assert chart["budgets"] == [{"turn": 0, "tokens": BUDGET}, {"turn": 20, "tokens": 2 * BUDGET}]


def test_compactions_are_marked_where_the_prompt_shrinks(member_client, session):
    chart = shown(member_client, session).json()
    assert len(chart["own_compactions"]) == session.compactions.filter(state="done").count() > 0
    for marker in chart["own_compactions"]:
        sizes = chart["served"][marker["turn"] - 1 : marker["turn"] + 1]
        assert len(sizes) == 1 or sizes[1] < 0.6 * sizes[0]  # the last turn's shows in the next prompt
        assert marker["tokens_after"] < 0.6 * marker["tokens_before"]
        assert marker["trigger"] == "hard"


def test_skipped_compactions_have_no_marker_and_reverted_ones_are_labeled(member_client, session):
    first, *_ = session.compactions.order_by("number")
    session.compactions.filter(pk=first.pk).update(state=Compaction.State.REVERTED)
    session.compactions.create(number=99, state=Compaction.State.SKIPPED, trigger="user", turn_index=3,
                               snapshot_position=9)  # fmt: skip
    markers = shown(member_client, session).json()["own_compactions"]
    assert [marker["is_reverted"] for marker in markers][:1] == [True]
    assert "user" not in {marker["trigger"] for marker in markers}


def test_the_table_names_the_compactions(member_client, session):
    first = session.compactions.filter(state="done").earliest("number")
    page = one_line(shown(member_client, session, "session_chart_table"))
    assert f"hard, from {first.tokens_before:,} to {first.tokens_after:,}" in page


@pytest.mark.slow
def test_sizes_are_shares_of_the_budget(member_client, session):
    assert '#session-budget">budget</a>' in one_line(shown(member_client, session, "session"))
    listed = member_client.get(reverse("sessions", args=[session.project.slug])).text
    assert "of budget" in listed


@pytest.mark.slow
def test_a_prompt_kept_within_its_budget_hits_no_wall(member_client, session):
    assert "hitting the wall" not in shown(member_client, session, "session").text


def test_an_imported_log_is_measured_against_its_window(project):
    assert limit_of(make_session(project)) == Limit(name="window", tokens=200_000)
    assert limit_of(make_session(project, name="other", model="house-model-1")) is None
