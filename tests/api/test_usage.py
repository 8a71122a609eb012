"""Cost and tokens over the API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions.models import AgentSession, Turn
from sessions.services.spending.rollups import rollups_fill
from tests.api.client import Api, code
from tests.plugins.reused import reused

SPAN = "usage/?from=2026-01-01&to=2026-01-31"
PRICED, UNPRICED = "claude-sonnet-4-5", "nobody-knows-it"


def turn(api: Api, session: str, at: str, *, model: str = PRICED, tokens: int = 100) -> None:
    """Push a turn with the time `at` (UTC)."""
    usage = {"input_tokens": tokens, "output_tokens": 10}
    body = {"messages": [{"role": "user", "content": "hi"}], "usage": usage, "model": model}
    made = api.post(f"sessions/{session}/turns/", body).json()
    Turn.objects.filter(session__external_id=session, index=made["turn"]).update(
        at=datetime.fromisoformat(at).replace(tzinfo=UTC)
    )


@reused
def history(api: Api) -> None:
    """Push turns of two agents in three sessions with two models in January 2026."""
    api.post("sessions/", {"id": "a", "agent": "coder", "tags": ["red", "blue"]})
    api.post("sessions/", {"id": "b", "agent": "coder", "tags": ["red"]})
    api.post("sessions/", {"id": "c", "agent": "writer"})
    turn(api, "a", "2026-01-05T12:00:00")
    turn(api, "a", "2026-01-05T23:30:00", tokens=200)
    turn(api, "b", "2026-01-06T12:00:00", tokens=300)
    turn(api, "c", "2026-01-31T23:59:59", model=UNPRICED, tokens=400)


def rows(api: Api, query: str, *keys: str) -> list[Any]:
    """Return the rows as tuples of their group and number of turns."""
    data = api.get(f"{SPAN}{query}").json()["data"]
    return [(*(row[key] for key in keys), row["turns"]) for row in data]


@pytest.mark.usefixtures("history")
class TestSums:
    def test_days_are_those_of_the_time_zone(self, api: Api) -> None:
        utc = [("2026-01-05", 2), ("2026-01-06", 1), ("2026-01-31", 1)]
        berlin = [("2026-01-05", 1), ("2026-01-06", 2)]
        assert rows(api, "", "day") == utc
        assert rows(api, "&time_zone=Europe/Berlin", "day") == berlin

    def test_both_ends_of_the_period_are_included(self, api: Api) -> None:
        shown = api.get("usage/?from=2026-01-06&to=2026-01-31").json()
        assert (shown["from"], shown["to"], shown["total"]["turns"]) == ("2026-01-06", "2026-01-31", 2)

    def test_groups_by_model_agent_and_tag(self, api: Api) -> None:
        assert rows(api, "&group_by=model", "model") == [(PRICED, 3), (UNPRICED, 1)]
        assert rows(api, "&group_by=agent", "agent") == [("coder", 3), ("writer", 1)]
        assert rows(api, "&group_by=tag", "tag") == [("", 1), ("blue", 2), ("red", 3)]

    def test_groups_combine(self, api: Api) -> None:
        assert rows(api, "&group_by=agent,model", "agent", "model") == [
            ("coder", PRICED, 3),
            ("writer", UNPRICED, 1),
        ]

    def test_the_total_counts_turns_with_several_tags_once(self, api: Api) -> None:
        assert api.get(f"{SPAN}&group_by=tag").json()["total"]["turns"] == 4

    def test_costs_agree_with_the_sessions(self, api: Api) -> None:
        total = api.get(SPAN).json()["total"]
        assert type(total["cost_microusd"]) is int
        assert total["cost_microusd"] == sum(AgentSession.objects.values_list("cost_microusd", flat=True)) > 0
        assert total["billed_tokens"] == {"uncached": 1000, "cache_read": 0, "cache_write": 0, "output": 40}

    def test_turns_count_once_before_and_after_trends_sum_them(self, api: Api) -> None:
        queries = [f"{SPAN}&group_by=day,model,agent&time_zone={zone}" for zone in ("UTC", "Europe/Berlin")]
        queries.append(f"{SPAN}&group_by=tag")

        def shown() -> list[Any]:
            return [api.get(query).json() for query in queries]

        new = shown()
        rollups_fill(everywhere=True)
        assert shown() == new
        turn(api, "a", "2026-01-05T12:01:00", model=UNPRICED)
        turn(api, "c", "2026-01-01T00:00:00")
        partly_summed = shown()
        assert partly_summed[0]["total"]["turns"] == new[0]["total"]["turns"] + 2
        rollups_fill(everywhere=True)
        assert shown() == partly_summed

    def test_unpriced_turns_are_counted(self, api: Api) -> None:
        by_model = {row["model"]: row for row in api.get(f"{SPAN}&group_by=model").json()["data"]}
        assert (by_model[UNPRICED]["unpriced_turns"], by_model[UNPRICED]["cost_microusd"]) == (1, 0)
        assert by_model[PRICED]["unpriced_turns"] == 0

    def test_the_history_of_a_fork_is_billed_once(self, api: Api) -> None:
        Turn.objects.filter(session__external_id="b").update(billed=False)
        assert api.get(SPAN).json()["total"]["turns"] == 3

    def test_other_projects_are_not_included(self, stranger_api: Api) -> None:
        shown = stranger_api.get(SPAN).json()
        assert (shown["data"], shown["total"]["turns"], shown["total"]["cost_microusd"]) == ([], 0, 0)

    def test_it_takes_one_statement(self, api: Api) -> None:
        api.get(SPAN)
        for number in range(5):
            turn(api, "a", f"2026-01-1{number}T12:00:00")
        with CaptureQueriesContext(connection) as queries:
            api.get(f"{SPAN}&group_by=day,model,agent,tag")
        about_usage = [query for query in queries if "agent_sessions" in query["sql"]]
        assert len(about_usage) == 1
        assert len(queries) <= 2  # and the API key, if the process has not cached it


@pytest.mark.django_db
class TestQuestions:
    def test_the_period_defaults_to_30_days(self, api: Api) -> None:
        api.post("sessions/", {"id": "now"})
        api.post("sessions/now/turns/", {"messages": [{"role": "user", "content": "hi"}]})
        shown = api.get("usage/").json()
        first, last = (datetime.fromisoformat(shown[name]) for name in ("from", "to"))
        assert ((last - first).days, shown["total"]["turns"], shown["group_by"]) == (29, 1, ["day"])

    @pytest.mark.parametrize(
        ("query", "param"),
        [
            ("from=yesterday", "from"),
            ("from=2026-02-30", "from"),
            ("from=0001-01-01", "from"),
            ("to=9999-12-31", "to"),
            ("from=2026-02-01&to=2026-01-01", "from"),
            ("from=2025-01-01&to=2026-01-02", "from"),
            ("group_by=color", "group_by"),
            ("group_by=day,day", "group_by"),
            ("group_by=day,", "group_by"),
            ("time_zone=Mars/Olympus", "time_zone"),
            ("time_zone=../../etc/passwd", "time_zone"),
            ("time_zone=a%00b", "time_zone"),
        ],
    )
    def test_an_invalid_parameter_is_named(self, api: Api, query: str, param: str) -> None:
        response = api.get(f"usage/?{query}")
        assert (response.status_code, code(response)) == (400, "invalid_field")
        assert response.json()["error"]["param"] == param

    def test_the_error_for_a_period_that_ends_before_it_begins_contains_both_days(self, api: Api) -> None:
        error = api.get("usage/?from=2026-01-31&to=2026-01-05").json()["error"]
        assert (error["code"], error["param"]) == ("invalid_field", "from")
        assert error["message"] == "`from` (2026-01-31) must not be after `to` (2026-01-05)."
        error = api.get("usage/?from=2998-01-01").json()["error"]
        assert error["param"] == "from"
        assert "which defaults to today" in error["message"]

    def test_the_error_for_an_invalid_day_contains_the_days_that_are_allowed(self, api: Api) -> None:
        error = api.get("usage/?to=3000-01-01").json()["error"]
        assert error["message"] == "`to` must be a date from 2000-01-01 to 2999-12-31."

    def test_the_period_has_at_most_366_days(self, api: Api) -> None:
        assert api.get("usage/?from=2025-01-01&to=2026-01-01").status_code == 200
