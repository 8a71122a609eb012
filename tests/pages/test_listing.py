"""Filter expressions, suggestions, saved views, CSV export, sparklines and update notices of the list."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import Membership, Project, Role
from sessions.models import AgentSession, SavedView
from sessions.pages.listing import export
from sessions.pages.listing.export import sessions_csv
from sessions.pages.listing.suggest import suggestions_of
from sessions.pages.saved_queries import query_clean
from sessions.pages.tags.figures import sparkline
from sessions.selectors.lists.filter_expression import HINTS, InvalidTerm, expression_read, size_read
from sessions.selectors.lists.filters import Bound, SessionFilter
from sessions.selectors.token_budgets import Limit
from sessions.services.sessions.profiles import profiles_refresh
from tests.markup import one_line
from tests.pages.transcripts import make_session
from tests.plugins.reused import reused

DAY = timedelta(days=1)
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
END = BEGIN + DAY - timedelta(microseconds=1)


def read(text):
    return expression_read(text, SessionFilter())


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("", {}),
        ("two words", {"text": "two words"}),
        ("agent:reader", {"agent": "reader"}),
        ('agent:"code reader" later', {"agent": "code reader", "text": "later"}),
        ("model:m tag:a tag:b", {"model": "m", "tags": ("a", "b")}),
        ("peak:>50k", {"bounds": (Bound(column="peak_prompt_tokens", value=50_000),)}),
        ("peak:50,000", {"bounds": (Bound(column="peak_prompt_tokens", value=50_000),)}),
        ("turns:<10", {"bounds": (Bound(column="turn_count", value=10, at_most=True),)}),
        ("cost:>$1.50", {"bounds": (Bound(column="cost_microusd", value=1_500_000),)}),
        ("health:c,D", {"grades": frozenset("CD")}),
        ("compacted:no subagents:yes", {"compacted": False, "sub_agents": True}),
        ("active:2026-03-01..2026-03-05", {"active_from": BEGIN, "active_to": END + 4 * DAY}),
        ("active:2026-03-01", {"active_from": BEGIN, "active_to": END}),
        ("active:..2026-03-01", {"active_to": END}),
        ("http://x/y", {"text": "http://x/y"}),
        ("fix: login", {"text": "fix: login"}),
        ("Agent:x", {"agent": "x"}),
        ("agent:x:", {"agent": "x:"}),
        ("error: not found", {"text": "error: not found"}),
    ],
)
def test_valid_expressions(text, filters):
    assert read(text).filters == SessionFilter(**filters)
    assert read(text).problems == []


@pytest.mark.parametrize(
    "text",
    [
        "agnet:x",
        "helth:A",
        "peak:many",
        "peak:1.2.3k",
        "cost:dear",
        "cost:>NaN",
        "health:X",
        "compacted:perhaps",
        "active:soon",
        "tool:Bash",
        "tool: ",
        'agent:""',
        "meta.repo:",
        *(f"{key}:" for key in HINTS),
    ],
)
def test_invalid_terms_are_reported_and_ignored(text):
    assert read(text).filters == SessionFilter()
    assert len(read(text).problems) == 1


def test_a_key_without_a_value_is_explained_wherever_it_is():
    found = read("agent: login")
    assert found.filters == SessionFilter(text="login")
    assert found.problems == ["Add a value directly after “agent:”. Example: agent:reader"]


def test_days_are_those_of_the_viewer():
    zone = ZoneInfo("America/Los_Angeles")
    filters = expression_read("active:2026-03-01", SessionFilter(), zone).filters
    assert filters.active_from == BEGIN + timedelta(hours=8)
    assert filters.active_to == END + timedelta(hours=8)


@pytest.mark.parametrize(
    ("text", "span"), [("active:7d", 7 * DAY), ("active:24h", DAY), ("active:2w", 14 * DAY)]
)
def test_recent_activity(text, span):
    filters = read(text).filters
    assert abs(timezone.now() - filters.active_from - span) < timedelta(minutes=1)
    assert filters.active_to is None


@given(st.text(max_size=60))
def test_anything_can_be_typed(text):
    read(text)


@given(st.sampled_from(sorted(HINTS)), st.text(max_size=20))
def test_any_value_can_be_typed_after_a_key(key, text):
    read(f"{key}:{text}")


def test_sizes():
    assert [size_read(text) for text in ("50000", "50k", "1.2M", ".5k")] == [50_000, 50_000, 1_200_000, 500]
    with pytest.raises(InvalidTerm):
        size_read("")


@pytest.mark.parametrize("text", ["cost:>1e999999", "peak:>" + "9" * 400, "turns:>" + "9" * 5_000])
def test_a_number_beyond_all_figures_is_the_largest_one(text):
    [bound] = read(text).filters.bounds
    assert bound.value in {2_000_000_000, 10**15}


def test_a_saved_query_has_no_cursor_and_no_empty_fields():
    assert query_clean("q=x&agent=&after=abc&peak=50k") == "q=x&peak=50k"
    assert query_clean("q=" + "x" * 2_000) == "q=" + "x" * 998


def test_a_sparkline_fits_its_box_and_shows_a_limit_nearby():
    drawn = sparkline([100, 200, 150], Limit(name="budget", tokens=220))
    assert 'points="0.0,14.0 50.0,4.0 100.0,9.0"' in drawn
    assert "spark-limit budget" in drawn
    assert "spark-limit" not in sparkline([100, 200], Limit(name="window", tokens=200_000))
    assert "peak 200" in drawn
    for few in ([], [5]):
        assert "svg" not in sparkline(few)


@reused
def listed(project):
    make_session(project, name="one", title="First thing", agent="code reader", tags=["nightly"])
    make_session(project, name="two", title="=SUM(A1)", agent="writer")
    profiles_refresh()
    return reverse("sessions", args=[project.slug])


def names(response):
    return {row.session.external_id for row in response.context["page"].rows}


@pytest.mark.django_db
class TestTheList:
    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ('agent:"code reader"', {"one"}),
            ("tag:nightly", {"one"}),
            ("tag:nightly tag:other", set()),
            ("peak:>3k", {"one", "two"}),
            ("peak:<3k", set()),
            ("turns:>3 cost:<1", {"one", "two"}),
            ("billed:>1M", set()),
            ("health:A,B", {"one", "two"}),
            ("health:F", set()),
            ("First agent:writer", set()),
        ],
    )
    def test_an_expression_filters_the_list(self, member_client, listed, query, found):
        assert names(member_client.get(listed, {"q": query})) == found

    def test_an_invalid_term_is_reported(self, member_client, listed):
        response = member_client.get(listed, {"q": "peak:many"})
        assert 'role="alert"' in response.text
        assert names(response) == set()

    def test_rows_have_sparkline_and_grade(self, member_client, listed):
        page = member_client.get(listed).text
        assert page.count('class="spark"') == 2
        assert page.count("grade-A") == 2

    def test_suggestions_complete_the_last_term(self, project, listed):
        def texts(text):
            return [suggestion.text for suggestion in suggestions_of(project=project, text=text)]

        assert texts("") == [*(f"{name}:" for name in HINTS), "meta."]
        assert texts("word ag") == ["word agent:"]
        assert texts("agent:") == ['agent:"code reader" ', "agent:writer "]
        assert texts('agent:"code r') == ['agent:"code reader" ']
        assert texts("tag:n") == ["tag:nightly "]
        assert texts("health:C") == []
        assert texts("peak:") == []

    @pytest.mark.slow
    def test_metadata_is_filtered_and_suggested(self, member_client, project, listed):
        one = AgentSession.objects.get(external_id="one")
        one.metadata = {"repo.name": "web app", "attempt": 2, "nightly": True}
        one.save()
        for text in ('meta.repo.name:"web app"', "meta.attempt:2", "meta.nightly:true"):
            rows = member_client.get(listed, {"q": text}).context["page"].rows
            assert [row.session.external_id for row in rows] == ["one"], text
        for text in ("meta.attempt:3", "meta.attempt:1e999", 'meta.x:["\\u0000"]', "meta.:x"):
            assert member_client.get(listed, {"q": text}).context["page"].rows == [], text
        suggested = suggestions_of(project=project, text="meta.R")
        assert [suggestion.text for suggestion in suggested] == ["meta.repo.name:"]

    def test_suggestions_come_as_json(self, member_client, project, listed):
        address = reverse("sessions_suggest", args=[project.slug])
        assert member_client.get(address, {"q": "mod"}).json() == {
            "suggestions": [{"text": "model:", "label": "model:", "hint": "name"}]
        }

    @pytest.mark.slow
    def test_the_palette_finds_sessions_by_their_words(self, member_client, stranger_client, project, listed):
        address = reverse("sessions_find", args=[project.slug])
        found = member_client.get(address, {"q": " ONE "}).json()["places"]
        [place] = [each for each in found if each["kind"] != "docs"]
        assert place["label"] == str(AgentSession.objects.get(external_id="one"))
        assert member_client.get(place["href"]).status_code == 200
        for text in ("", "\0", "no such words"):
            assert member_client.get(address, {"q": text}).json() == {"places": []}
        assert stranger_client.get(address, {"q": "one"}).status_code == 404

    @pytest.mark.slow
    def test_the_palette_finds_projects_that_the_menu_omits(self, member, member_client, project):
        others = [Project(name=f"Team {number:02}", slug=f"team-{number}") for number in range(60)]
        Project.objects.bulk_create(others)
        Membership.objects.bulk_create(
            Membership(project=other, user=member, role=Role.VIEWER) for other in others
        )
        last = reverse("sessions", args=["team-59"])
        page = member_client.get(reverse("sessions", args=[project.slug])).text
        assert last not in page
        assert "Find another project" in page
        found = member_client.get(reverse("sessions_find", args=[project.slug]), {"q": "team 59"}).json()
        assert {"label": "Team 59", "kind": "project", "href": last} in found["places"]

    @pytest.mark.slow
    def test_a_view_is_saved_and_deleted(self, viewer_client, owner_client, project, listed):
        save = reverse("saved_view_create", args=[project.slug])
        for query in ("q=tag%3Anightly", "q=tag%3Anightly&after=x"):
            viewer_client.post(save, {"name": "Nightly", "query": query})
        view = SavedView.objects.get()
        assert (view.name, view.query) == ("Nightly", "q=tag%3Anightly")
        assert f'href="?{view.query}"'.replace("&", "&amp;") in viewer_client.get(listed).text
        assert "Nightly</a>" not in owner_client.get(listed).text
        forget = reverse("saved_view_delete", args=[project.slug, view.pk])
        assert owner_client.post(forget).status_code == 404
        current = f"http://testserver{listed}?q=tag%3Aother"
        assert viewer_client.post(forget, headers={"Referer": current}).url == current
        assert not SavedView.objects.exists()
        viewer_client.post(save, {"name": "", "query": "q=x"})
        assert not SavedView.objects.exists()

    def test_the_csv_has_all_rows_and_no_formulas(self, member_client, project, listed):
        address = reverse("sessions_export", args=[project.slug])
        response = member_client.get(address)
        rows = list(csv.DictReader(io.StringIO(response.getvalue().decode())))
        assert {row["external_id"] for row in rows} == {"one", "two"}
        assert {row["title"] for row in rows} == {"First thing", "'=SUM(A1)"}
        assert {row["health"] for row in rows} == {"A"}
        costs = {f"{session.cost_microusd / 1e6:.6f}" for session in project.agent_sessions.all()}
        assert {row["cost_usd"] for row in rows} == costs
        narrowed = member_client.get(address, {"q": "tag:nightly"}).getvalue().decode()
        assert len(narrowed.splitlines()) == 2

    def test_the_csv_needs_one_query_for_each_page_of_sessions(
        self, member_client, project, listed, monkeypatch, django_assert_max_num_queries
    ):
        address = reverse("sessions_export", args=[project.slug])
        whole = member_client.get(address).getvalue()
        lines = sessions_csv(project=project, filters=SessionFilter())
        with django_assert_max_num_queries(2):  # the sessions, and custom prices
            assert "".join(lines).encode() == whole
        monkeypatch.setattr(export, "_PAGE", 1)
        assert member_client.get(address).getvalue() == whole

    def test_an_invalid_filter_selects_nothing(self, member_client, project, listed):
        queries = ({"q": "peak:lots"}, {"q": "agnet:reader"}, {"peak": "1.2.3k"}, {"compacted": "perhaps"})
        for query in (*queries, {"active_from": "yesterday"}):
            response = member_client.get(reverse("sessions", args=[project.slug]), query)
            assert response.context["page"].rows == []
            assert "Invalid filter" in response.text
            assert (
                member_client.get(reverse("sessions_export", args=[project.slug]), query).status_code == 400
            )

    def test_days_in_filters_are_those_of_the_viewer(self, member_client, project, listed):
        at = datetime(2026, 3, 2, 2, tzinfo=UTC)  # March 1 in California
        AgentSession.objects.update(started_at=at, last_active_at=at)
        address, day = reverse("sessions", args=[project.slug]), {"active_from": "2026-03-02"}
        assert len(member_client.get(address, day).context["page"].rows) == 2
        member_client.cookies["zone"] = "America/Los_Angeles"
        assert not member_client.get(address, day).context["page"].rows

    def test_updated_sessions_are_announced(self, member_client, project, listed):
        address = reverse("sessions_updated", args=[project.slug])
        since = timezone.now() - timedelta(minutes=1)
        assert "updated session" not in member_client.get(address, {"since": since.isoformat()}).text
        AgentSession.objects.filter(external_id="one").update(last_active_at=timezone.now())
        query = {"since": since.isoformat(), "q": "tag:nightly"}
        page = one_line(member_client.get(address, query))
        assert "1 updated session" in page
        assert f'href="{listed}?q=tag%3Anightly"' in page
        assert (
            "updated session"
            not in member_client.get(address, {**query, "q": "tag:none"}).text.split("hx-trigger")[1]
        )
        assert member_client.get(address, {"since": "x"}).status_code == 200


@reused
def many(project):
    AgentSession.objects.bulk_create(
        AgentSession(
            project=project,
            external_id=f"s-{n}",
            turn_count=n % 7,
            last_prompt_tokens=n % 11,
            peak_prompt_tokens=n % 5,
            cost_microusd=(n * 37) % 13 * 1_000_000_000,
        )
        for n in range(120)
    )
    return project


@pytest.mark.django_db
class TestOrder:
    COLUMNS = {"turns": "turn_count", "last": "last_prompt_tokens", "peak": "peak_prompt_tokens"} | {
        "cost": "cost_microusd"
    }

    def pages(self, client, project, **query):
        address = reverse("sessions", args=[project.slug])
        shown, answer = [], client.get(address, query)
        while True:
            shown += [row.session for row in answer.context["page"].rows]
            if not answer.context["next_query"]:
                return shown
            answer = client.get(f"{address}?{answer.context['next_query']}")

    @pytest.mark.slow
    @pytest.mark.parametrize("order", list(COLUMNS))
    def test_descending_order_across_all_pages(self, member_client, many, order):
        shown = self.pages(member_client, many, sort=order)
        values = [getattr(session, self.COLUMNS[order]) for session in shown]
        assert values == sorted(values, reverse=True)
        assert len({session.pk for session in shown}) == len(shown) == 120

    def test_a_filter_keeps_the_order_and_the_order_the_filter(self, member_client, many):
        answer = member_client.get(reverse("sessions", args=[many.slug]), {"sort": "cost", "q": "turns:>5"})
        assert {row.session.turn_count for row in answer.context["page"].rows} == {5, 6}
        assert '<input type="hidden" name="sort" value="cost">' in answer.text
        assert "sort=turns" in answer.context["sorts"]["turns"].address
        assert "q=turns" in answer.context["sorts"]["turns"].address
        assert 'aria-sort="descending"' in answer.text

    @pytest.mark.parametrize("order", ["", "nothing", "id", "project"])
    def test_an_unknown_order_means_newest_first(self, member_client, many, order):
        answer = member_client.get(reverse("sessions", args=[many.slug]), {"sort": order})
        assert answer.context["order"] == "activity"

    @pytest.mark.slow
    def test_a_cursor_of_another_order_starts_at_the_top(self, member_client, many):
        first = member_client.get(reverse("sessions", args=[many.slug]), {"sort": "cost"})
        after = first.context["page"].next_cursor
        address = reverse("sessions", args=[many.slug])
        newest = member_client.get(address).context["page"].next_cursor
        for order, cursor in (("activity", after), ("turns", newest), ("cost", newest)):
            answer = member_client.get(
                reverse("sessions", args=[many.slug]), {"sort": order, "after": cursor}
            )
            assert answer.status_code == 200
            assert len(answer.context["page"].rows) == 50
        assert (
            member_client.get(reverse("settings_audit", args=[many.slug]), {"after": after}).status_code
            == 200
        )


@pytest.mark.django_db
def test_an_empty_project_shows_first_steps_and_no_filter(member_client, project):
    page = member_client.get(reverse("sessions", args=[project.slug])).text
    assert "Load sample data" in page
    connect = reverse("connect", args=[project.slug])
    assert f'"{connect}#python"' in page
    assert 'id="python"' in member_client.get(connect).text
    assert "data-suggest" not in page
    assert "filter.js" not in page
    # A filter without matches stays visible.
    assert "data-suggest" in member_client.get(reverse("sessions", args=[project.slug]), {"q": "none"}).text


@pytest.mark.django_db
def test_a_session_without_turns_has_no_grade(member_client, project):
    empty = AgentSession.objects.create(project=project, external_id="empty")
    profiles_refresh()
    assert AgentSession.objects.get(pk=empty.pk).turn_count == 0
    assert 'class="grade' not in member_client.get(reverse("sessions", args=[project.slug])).text
