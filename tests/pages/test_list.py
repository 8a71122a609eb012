from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from sessions.models import AgentSession
from sessions.selectors.lists import sessions
from sessions.selectors.lists.filters import Cursor, SessionFilter
from sessions.selectors.lists.sessions import sessions_list
from tests.markup import one_line
from tests.pages.transcripts import START, make_session, reading_turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db


def listed(client, project, **query):
    response = client.get(reverse("sessions", args=[project.slug]), query)
    assert response.status_code == 200
    return [row.session.external_id for row in response.context["page"].rows]


@reused
def many(project):
    """Five sessions that were last active at the same time, and a later one."""
    for number in range(5):
        make_session(project, name=f"same-{number}")
    late = make_session(project, name="late", title="A later one", agent="writer", tags=["nightly"])
    AgentSession.objects.filter(pk=late.pk).update(
        last_active_at=START + timedelta(days=3), peak_prompt_tokens=70_000, context_start=2
    )
    return project


def test_the_front_page_redirects_to_the_first_project(member_client, project):
    assert member_client.get("/").url == reverse("sessions", args=[project.slug])


def test_a_user_without_a_project(django_user_model, logged_in):
    client = logged_in(django_user_model.objects.create_user("nemo"))
    assert "You are not in a project yet" in client.get("/").text


def test_an_empty_project_offers_the_sample(member_client, project):
    page = member_client.get(reverse("sessions", args=[project.slug])).text
    assert "Load sample data" in page
    assert f"import_sessions --discover --project {project.slug}" in page


def test_a_viewer_is_not_offered_the_sample(viewer_client, project):
    assert "Load sample data" not in viewer_client.get(reverse("sessions", args=[project.slug])).text


def test_agents_and_models_of_the_newest_sessions_can_be_chosen(
    member_client, project, monkeypatch, subtests
):
    monkeypatch.setattr(sessions, "MAX_FACETED", 2)
    for number, agent in enumerate(("older", "writer", "newest")):
        make_session(project, name=agent, agent=agent)
        AgentSession.objects.filter(external_id=agent).update(
            last_active_at=START + timedelta(days=number), model=f"model-of-{agent}"
        )
    address = reverse("sessions", args=[project.slug])
    with subtests.test("the newest"):
        page = one_line(member_client.get(address))
        for name in ("newest", "writer"):
            assert f"<option>{name}</option>" in page
            assert f"<option>model-of-{name}</option>" in page
        assert "<option>older</option>" not in page
    with subtests.test("another one stays selected"):
        page = one_line(member_client.get(address, {"agent": "older"}))
        assert "<option selected>older</option>" in page
        assert listed(member_client, project, agent="older") == ["older"]


def test_a_row_distinguishes_sizes_from_totals(member_client, project):
    make_session(project)
    page = member_client.get(reverse("sessions", args=[project.slug])).text
    assert '<data value="3005" title="3,005 tokens">3k</data>' in page  # last and peak prompt
    assert "input and output tokens, summed over all calls" in page
    assert "Reads some files" in page


def test_newest_first(member_client, many):
    assert listed(member_client, many)[0] == "late"


def test_paging_shows_every_row_once_under_equal_times(member_client, many):
    seen, cursor = [], None
    while True:
        page = sessions_list(project=many, filters=SessionFilter(), after=cursor, limit=2)
        seen += [row.session.external_id for row in page.rows]
        if page.next_cursor is None:
            break
        cursor = Cursor.decode(page.next_cursor)
    assert len(seen) == len(set(seen)) == AgentSession.objects.filter(project=many).count()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"q": "LATER one"}, {"late"}),
        ({"q": "night"}, {"late"}),
        ({"q": "same-3"}, {"same-3"}),
        ({"q": "nothing such"}, set()),
        ({"agent": "writer"}, {"late"}),
        ({"model": "no-such-model"}, set()),
        ({"tag": "nightly"}, {"late"}),
        ({"compacted": "yes"}, {"late"}),
        ({"peak": "50k"}, {"late"}),
        ({"active_from": "2026-03-03"}, {"late"}),
        ({"active_to": "2026-03-01"}, set()),
        ({"active_from": "2026-03-05", "active_to": "2026-03-05"}, {"late"}),
        ({"agent": "reader", "compacted": "yes"}, set()),
    ],
)
def test_filters(member_client, many, query, found):
    assert set(listed(member_client, many, **query)) == found


@pytest.mark.parametrize("cursor", ["x", "!!!", "AAAA", "%00", "MjAyNi0wMy0wMiBub3QtYS11dWlk"])
def test_an_invalid_cursor_starts_at_the_newest(member_client, many, cursor):
    assert len(listed(member_client, many, after=cursor)) == 6


def test_a_cursor_round_trips():
    cursor = Cursor(at=datetime(2026, 3, 2, 9, 0, 0, 123456, UTC), id=AgentSession().pk)
    assert Cursor.decode(cursor.encode()) == cursor


@pytest.mark.slow
def test_sub_agents_are_counted_once(member_client, project):
    make_session(project, name="parent")
    make_session(project, name="child", parent="parent", title="Looks around")
    assert listed(member_client, project) == ["parent"]
    page = one_line(member_client.get(reverse("sessions", args=[project.slug])))
    assert "1 sub-agent" in page
    assert "by 1 sub-agent" not in page, "a sub-agent without usage adds no cost"
    AgentSession.objects.filter(external_id="child").update(cost_microusd=250_000)
    assert "by 1 sub-agent" in one_line(member_client.get(reverse("sessions", args=[project.slug])))
    assert set(listed(member_client, project, sub_agents="on")) == {"parent", "child"}
    assert listed(member_client, project, q="around") == ["child"]


def test_htmx_gets_the_list_only(member_client, many):
    response = member_client.get(reverse("sessions", args=[many.slug]), headers={"HX-Request": "true"})
    assert "<html" not in response.text
    assert "HX-Request" in response["Vary"]


def test_history_restore_gets_the_full_page(member_client, many):
    headers = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert "<html" in member_client.get(reverse("sessions", args=[many.slug]), headers=headers).text


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow(member_client, project, django_assert_num_queries):
    make_session(project, name="first")
    address = reverse("sessions", args=[project.slug])
    with django_assert_num_queries(9):
        member_client.get(address)
    for number in range(8):
        make_session(project, name=f"more-{number}")
        make_session(project, name=f"child-{number}", parent=f"more-{number}")
    AgentSession.objects.update(compaction_count=1)  # their savings take three more
    with django_assert_num_queries(12):
        member_client.get(address)


@pytest.mark.slow
def test_too_many_names_to_choose_from_are_typed(member_client, project):
    def names(numbers):
        return [
            AgentSession(project=project, external_id=f"{n}", agent=f"agent {n}", model="model")
            for n in numbers
        ]

    address = reverse("sessions", args=[project.slug])
    AgentSession.objects.bulk_create(names(range(200)))
    assert "<option>agent 199</option>" in member_client.get(address).text
    AgentSession.objects.bulk_create(names([200]))
    page = member_client.get(f"{address}?agent=agent+7")
    assert "<option>agent" not in page.text
    assert '<input name="agent" value="agent 7"' in page.text
    assert "<option>model</option>" in page.text
    assert page.context["count"] == 1
    make_session(project, [reading_turn(0), reading_turn(1)])
    assert '<input name="agent"' in member_client.get(reverse("replay", args=[project.slug])).text


def test_a_title_is_text(member_client, project):
    make_session(project, title="<script>alert(1)</script>", tags=['"><b>'])
    page = member_client.get(reverse("sessions", args=[project.slug])).text
    assert "<script>alert" not in page
    assert '"><b>' not in page
