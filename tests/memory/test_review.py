"""The review of proposed facts: over HTTP, and in a real browser by keyboard and mouse."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from playwright.sync_api import Page, expect

from accounts.models import AuditEvent, Project
from compaction.memory.origins import Author
from sessions.models import AgentSession, SharedFact
from sessions.pages.memory import shared
from sessions.services.memory.proposals import facts_propose
from sessions.services.memory.revisions import Writer, memory_patch
from tests.browsing import PHONE, barriers, fits_in_width
from tests.markup import one_line
from tests.pages.transcripts import make_session
from tests.plugins.reused import reused

MODEL, PERSON = Writer(author=Author.MODEL), Writer(author=Author.PERSON)


def says(project: Project, name: str, *decisions: str) -> AgentSession:
    """Return a session with these items, which are proposed."""
    session: AgentSession = make_session(project, name=name, agent="coder")
    memory_patch(session=session, changes={"decisions": list(decisions)}, writer=MODEL)
    facts_propose(session=session)
    return session


@reused
def fact_session(project: Project) -> AgentSession:
    """Three facts. Three sessions had `run pytest -q`, and a user removed it from the last one."""
    says(project, "first", "run pytest -q", "no clock")
    says(project, "second", "Run pytest -q.", "pin the compiler")
    session = says(project, "third", "run pytest  -q")
    memory_patch(session=session, changes={"decisions": []}, writer=PERSON)
    return session


def listed(client: Client, project: Project, state: str = "proposed") -> str:
    page = client.get(reverse("memory", args=[project.slug]), {"state": state})
    return page.content.decode()


def stored(text: str) -> SharedFact:
    return SharedFact.objects.get(text=text)


@pytest.mark.django_db
class TestOverHttp:
    def test_common_facts_come_first_and_doubts_are_explained(
        self, owner_client: Client, project: Project, fact_session: AgentSession
    ) -> None:
        page = listed(owner_client, project)
        assert page.index("run pytest -q") < page.index("pin the compiler") < page.index("no clock")
        assert "seen in 3 sessions</b>" in page
        assert "removed by a user in revision 2" in page

    def test_pages_contain_each_fact_once(
        self, owner_client: Client, project: Project, fact_session: AgentSession, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(shared, "MAX_FACTS", 1)
        url, found = reverse("memory", args=[project.slug]), []
        while url:
            page = owner_client.get(url)
            found += [fact.text for fact in page.context["facts"]]
            more = re.search(r'href="([?]state=proposed&amp;after=[^"]+)">More facts', page.text)
            url = reverse("memory", args=[project.slug]) + unescape(more[1]) if more else ""
        assert found == ["run pytest -q", "pin the compiler", "no clock"]
        assert "run pytest -q" in owner_client.get(f"{page.wsgi_request.path}?after=unknown").text

    def test_a_fact_is_decided_in_place_and_undone(
        self, owner_client: Client, project: Project, fact_session: AgentSession
    ) -> None:
        fact = stored("no clock")
        url = reverse("memory_fact", args=[project.slug, fact.pk])
        data = {"state": "accepted", "text": "use no clock", "list": "proposed"}
        assert "To review <small>3</small>" in listed(owner_client, project)
        row = one_line(owner_client.post(url, data, headers={"HX-Request": "true"}))
        assert "<!doctype" not in row
        assert "use no clock" in row
        assert "To review <small>2</small>" in row
        assert "Accepted <small>1</small>" in row
        assert "Undo" in row
        owner_client.post(url, {"state": "proposed", "list": "proposed"}, headers={"HX-Request": "true"})
        fact.refresh_from_db()
        assert (fact.state, fact.text) == ("proposed", "use no clock")

    @pytest.mark.slow
    def test_an_invalid_decision_shows_an_error_in_its_row(
        self, owner_client: Client, project: Project, fact_session: AgentSession
    ) -> None:
        url = reverse("memory_fact", args=[project.slug, stored("no clock").pk])
        data = {"state": "accepted", "text": "Pin the compiler!", "list": "proposed"}
        row = owner_client.post(url, data, headers={"HX-Request": "true"}).content.decode()
        assert "The change was not saved: the text must be new" in row
        assert "Pin the compiler!</textarea>" in row  # what the user wrote
        assert stored("no clock").state == "proposed"

    def test_several_are_accepted_at_once(
        self, member_client: Client, project: Project, fact_session: AgentSession
    ) -> None:
        ids = [str(fact.pk) for fact in SharedFact.objects.exclude(text="no clock")]
        url = reverse("memory_facts", args=[project.slug])
        page = member_client.post(url, {"state": "accepted", "fact": [*ids, "x"]}, follow=True)
        assert b"2 facts accepted." in page.content
        assert stored("no clock").state == "proposed"
        assert AuditEvent.objects.filter(action="memory.fact.accepted").count() == 2
        again = member_client.post(url, {"state": "accepted"}, follow=True)
        assert b"Select at least one fact." in again.content
        assert member_client.post(url, {"state": "old", "fact": ids}).status_code == 404

    def test_facts_of_another_project_are_not_found(
        self, stranger_client: Client, other_project: Project, project: Project, fact_session: AgentSession
    ) -> None:
        fact = stored("no clock")
        page = listed(stranger_client, other_project)
        assert "Nothing to review" in page
        assert "are proposed here automatically" in page
        own = reverse("memory_facts", args=[other_project.slug])
        stranger_client.post(own, {"state": "accepted", "fact": str(fact.pk)})
        url = reverse("memory_fact", args=[other_project.slug, fact.pk])
        assert stranger_client.post(url, {"state": "accepted"}).status_code == 404
        theirs = reverse("memory_facts", args=[project.slug])
        assert stranger_client.post(theirs, {"state": "accepted"}).status_code == 404
        assert stored("no clock").state == "proposed"

    def test_viewers_are_offered_no_decision(
        self, viewer_client: Client, project: Project, fact_session: AgentSession
    ) -> None:
        assert ">Accept<" not in listed(viewer_client, project)

    @pytest.mark.slow
    def test_the_number_of_queries_is_constant(self, owner_client: Client, project: Project) -> None:
        counts = []
        for start in (0, 5):
            for n in range(start, start + 5):
                session = says(project, f"s{n}", f"fact {n}", "shared by all")
                memory_patch(session=session, changes={"decisions": []}, writer=PERSON)
            with CaptureQueriesContext(connection) as captured:
                listed(owner_client, project)
            counts.append(len(captured))
        assert counts[0] == counts[1] <= 8


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
class TestInABrowser:
    def test_by_keyboard(
        self, page_as: Any, owner: Any, project: Project, fact_session: AgentSession
    ) -> None:
        page: Page = page_as(owner)
        page.goto(reverse("memory", args=[project.slug]))
        rows = page.locator("[data-fact]")
        page.keyboard.press("j")
        expect(rows.nth(0)).to_be_focused()
        page.keyboard.press("r")
        expect(rows.nth(0)).to_have_class("is-decided")
        expect(rows.nth(1)).to_be_focused()
        page.keyboard.press("e")
        expect(rows.nth(1).locator("textarea")).to_be_focused()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type("pin the compiler to 4.2")
        page.keyboard.press("Escape")
        expect(rows.nth(1)).to_be_focused()
        page.keyboard.press("a")
        expect(rows.nth(1)).to_contain_text("accepted")
        expect(rows.nth(2)).to_be_focused()
        page.keyboard.press("k")
        page.keyboard.press("k")
        page.keyboard.press("u")
        expect(rows.nth(0)).to_be_focused()
        expect(rows.nth(0).locator("textarea")).to_have_value("run pytest -q")
        states = {fact.text: fact.state for fact in SharedFact.objects.all()}
        assert states == {
            "run pytest -q": "proposed",
            "pin the compiler to 4.2": "accepted",
            "no clock": "proposed",
        }

    def test_bulk_decisions_skip_edited_facts(
        self, page_as: Any, owner: Any, project: Project, fact_session: AgentSession
    ) -> None:
        page: Page = page_as(owner)
        page.goto(reverse("memory", args=[project.slug]))
        page.locator("[data-fact] textarea").nth(1).fill("pin it")
        page.get_by_label("All", exact=True).check()
        page.get_by_role("button", name="Accept selected").click()
        expect(page.get_by_text("2 facts accepted.")).to_be_visible()
        expect(page.locator("[data-fact]")).to_have_count(1)
        assert stored("pin the compiler").state == "proposed"

    def test_accessibility_and_width(
        self, page_as: Any, owner: Any, project: Project, fact_session: AgentSession
    ) -> None:
        page: Page = page_as(owner)
        page.emulate_media(reduced_motion="reduce")
        page.set_viewport_size(PHONE)
        page.goto(reverse("memory", args=[project.slug]))
        page.get_by_role("button", name="Accept", exact=True).first.click()
        expect(page.locator(".is-decided")).to_have_count(1)
        assert barriers(page) == []
        assert fits_in_width(page)
