"""Pages of active sessions update themselves."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from compaction.memory.origins import Author
from sessions.models import AgentSession
from sessions.selectors.transcripts.pages import SHOWN
from sessions.services.memory.revisions import Writer, memory_patch
from sessions.services.sessions.comments import comment_create
from sessions.services.sessions.lifecycle import session_delete
from sessions.services.spending.rollups import rollups_fill
from tests.pages.served import address, compacted_session
from tests.pages.transcripts import make_session, reading_turn
from tests.trends.turns import turn_make, turns_add

#: Polls at once instead of after some seconds.
POLL = "document.dispatchEvent(new Event('visibilitychange'))"


def active(project, turns, name="live"):
    """Import a session that was active a moment ago. A longer import adds turns to it."""
    session = make_session(project, [reading_turn(n) for n in range(turns)], name=name)
    AgentSession.objects.filter(pk=session.pk).update(last_active_at=timezone.now())
    session.refresh_from_db()
    return session


@pytest.mark.django_db
class TestRequests:
    def since(self, client, session):
        page = client.get(address("session", session)).text
        return re.search(r'data-since="([\d.]+)"', page)[1]

    def test_nothing_new_takes_one_query_besides_the_login(
        self, member_client, project, django_assert_num_queries
    ):
        session = active(project, 3)
        since = self.since(member_client, session)
        with django_assert_num_queries(3) as queries:
            response = member_client.get(address("session_live", session), {"since": since})
        assert response.status_code == 204
        assert sum("agent_sessions_agentsession" in query["sql"] for query in queries) == 1

    @pytest.mark.slow
    def test_new_turns_and_figures(self, member_client, project):
        session = active(project, 3)
        since = self.since(member_client, session)
        active(project, 5)
        target = address("session_live", session)
        page = member_client.get(target, {"since": since, "append": 1}).text
        assert 'hx-swap-oob="beforeend:#transcript"' in page
        assert 'id="turn-3"' in page
        assert 'id="turn-4"' in page
        assert 'id="turn-2"' not in page
        assert 'data-news="2 new turns"' in page
        assert 'id="tiles" hx-swap-oob="true"' in page
        assert 'id="turn-3"' not in member_client.get(target, {"since": since}).text

    def test_a_title_that_was_set_since(self, member_client, project):
        session = active(project, 1)
        since = self.since(member_client, session)
        AgentSession.objects.filter(pk=session.pk).update(title="Fix the login", turn_count=2)
        page = member_client.get(address("session_live", session), {"since": since}).text
        assert '<h1 id="session-title" hx-swap-oob="true">Fix the login</h1>' in page

    def test_a_changed_budget_updates_the_page_and_its_chart(self, member_client, project):
        session = active(project, 2)
        since = self.since(member_client, session)
        chart = address("session_chart", session)
        assert member_client.get(chart, {"live": 1}).json()["budget"] is None
        for tokens in ("50000", "60000"):
            member_client.post(address("session_budget", session), {"tokens": tokens})
            page = member_client.get(address("session_live", session), {"since": since})
            assert page.status_code == 200
            since = re.search(r'data-since="([\d.]+)"', page.text)[1]
            assert member_client.get(chart, {"live": 1}).json()["budget"] == int(tokens)
        assert member_client.get(address("session_live", session), {"since": since}).status_code == 204

    @pytest.mark.slow
    def test_many_new_turns_are_paged(self, member_client, project):
        session = active(project, 2)
        since = self.since(member_client, session)
        active(project, 40)
        page = member_client.get(address("session_live", session), {"since": since, "append": 1}).text
        last = 1 + SHOWN
        assert f'id="turn-{last}"' in page
        assert f'id="turn-{last + 1}"' not in page
        assert f"?after={last}" in page

    @pytest.mark.slow
    def test_the_savings_appear_as_soon_as_they_are_calculated(self, member_client, project):
        session = compacted_session(project, name="live")
        count, now = session.turn_count, timezone.now()
        AgentSession.objects.filter(pk=session.pk).update(last_active_at=now)
        turns_add(session, [turn_make(session, count, now, prompt_estimate=9_000, prompt_served=100)])
        since = self.since(member_client, session)
        assert "Not known yet" in member_client.get(address("session", session)).text
        rollups_fill()
        page = member_client.get(address("session_live", session), {"since": since, "append": 1}).text
        assert 'id="tiles" hx-swap-oob="true"' in page
        assert "fewer input tokens" in page
        assert "Not known yet" not in page

    @pytest.mark.parametrize("since", ["", "x", "1.2", "1.2.3.4", "1.2.3.4.5.6", "-1.0.0.0.0", "9.9.9.9.9"])
    def test_an_unknown_state_is_outdated(self, member_client, project, since):
        session = active(project, 2)
        response = member_client.get(address("session_live", session), {"since": since, "append": 1})
        assert response.status_code == 200
        assert 'id="turn-' not in response.text

    @pytest.mark.slow
    def test_an_update_is_rendered_once_for_all_viewers(
        self, member_client, viewer_client, owner_client, project, django_assert_max_num_queries
    ):
        session = active(project, 3)
        since = self.since(member_client, session)
        active(project, 5)
        target, query = address("session_live", session), {"since": since, "append": 1}
        first = member_client.get(target, query).text
        with django_assert_max_num_queries(6):  # the login, the state, the project and comments
            second = owner_client.get(target, query).text
        tokens = [set(re.findall(r'csrfmiddlewaretoken" value="(\w+)"', page)) for page in (first, second)]
        assert [len(each) for each in tokens] == [1, 1]
        assert tokens[0] != tokens[1]
        without_tokens = [re.sub(r'value="\w{64}"', "", page) for page in (first, second)]
        assert without_tokens[0] == without_tokens[1]
        assert "csrfmiddlewaretoken" not in viewer_client.get(target, query).text

    @pytest.mark.slow
    def test_only_the_author_of_a_comment_can_change_it(self, member_client, owner_client, project, member):
        session = active(project, 3)
        since = self.since(member_client, session)
        active(project, 5)
        comment_create(session=session, turn=4, text="Look here", author_id=member.pk)
        target, query = address("session_live", session), {"since": since, "append": 1}
        assert "comment-edit" in member_client.get(target, query).text
        shown = owner_client.get(target, query).text
        assert "Look here" in shown
        assert "comment-edit" not in shown

    def test_an_inactive_session_does_not_poll(self, member_client, project):
        page = member_client.get(address("session", make_session(project))).text
        assert 'id="live"' not in page


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
class TestBrowser:
    def test_new_turns_appear_until_the_user_pauses(self, at, page, project, complaints):
        session = active(project, 3)
        at(address("session", session))
        chart = page.locator(".chart canvas")
        expect(chart).to_be_visible()
        before = page.evaluate("scrollY")
        active(project, 5)
        expect(page.locator("#turn-4")).to_be_visible()
        expect(page.locator("#session-tabs [aria-current] small")).to_have_text("5")
        expect(page.get_by_role("slider", name=re.compile("over 5 turns"))).to_be_attached()
        expect(page.locator("[data-live-status]")).to_have_text("2 new turns")
        assert page.evaluate("scrollY") == before
        page.get_by_role("button", name="Live").click()
        active(project, 6)
        with page.expect_response(
            lambda response: "/live/" in response.url and response.status == 200
        ) as found:
            assert page.locator("#turn-5").count() == 0
            page.get_by_role("button", name="Paused").click()
        assert found.value.ok
        expect(page.locator("#turn-5")).to_be_visible()
        assert complaints == []

        session_delete(session=session)
        polls: list[str] = []
        page.on("request", lambda request: "/live/" in request.url and polls.append(request.url))
        page.evaluate(POLL)
        expect(page.get_by_role("alert")).to_contain_text("This was deleted")
        expect(page.get_by_role("button", name="Live")).to_be_hidden()
        page.evaluate(POLL)
        page.evaluate("fetch('/healthz')")
        assert len(polls) == 1
        complaints.clear()  # the browser reports the failed request

    def test_memory_appears(self, at, page, project):
        session = active(project, 2)
        at(address("session_memory", session))
        memory_patch(session=session, changes={"task": "find the leak"}, writer=Writer(author=Author.MODEL))
        expect(page.get_by_text("find the leak").first).to_be_visible()
        page.get_by_text("Add an item").click()
        page.get_by_label("Text", exact=True).first.fill("half a sentence")
        memory_patch(session=session, changes={"task": "fix the leak"}, writer=Writer(author=Author.MODEL))
        with page.expect_response(lambda response: "/live/" in response.url and response.status == 200):
            pass
        expect(page.get_by_label("Text", exact=True).first).to_have_value("half a sentence")
