"""Working memory pages: a session's memory, its revisions, shared facts and settings."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import Project
from compaction.memory.origins import Author
from sessions.models import AgentSession, MemoryRevision, SharedFact
from sessions.selectors.memory.revisions import memory_latest, memory_notes
from sessions.services.memory.proposals import facts_propose
from sessions.services.memory.revisions import Writer, memory_patch
from tests.markup import one_line
from tests.pages.served import address
from tests.pages.transcripts import make_session, reading_turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

DIFF = "src/pool.py\n@@ @@\n-a = 1\n+a = 2"


@reused
def stored(project: Project) -> AgentSession:
    session: AgentSession = make_session(project, [reading_turn(index) for index in range(3)])
    write(session, decisions=["use a clock"], recent_edits=[DIFF])
    write(session, decisions=["use the clock", "evict <b>early</b>"], recent_edits=[DIFF])
    return session


def write(session: AgentSession, author: Author = Author.MODEL, **changes: Any) -> None:
    memory_patch(session=session, changes=changes, writer=Writer(author=author, turn=1, position=2))


def forms_with_operation(page: str, op: str) -> list[dict[str, str]]:
    """Return the fields of the page's forms that have the given operation."""
    fields = re.compile(r'<(?:input[^>]*|textarea)\s+name="(\w+)"(?:\s+value="([^"]*)"|\s+hidden>\n([^<]*)<)')
    found = [
        {name: unescape(value or text) for name, value, text in fields.findall(form)}
        for form in re.findall(r"<form.*?</form>", page, re.DOTALL)
    ]
    return [form for form in found if form.get("op") == op]


def memory(session: AgentSession) -> Any:
    return memory_notes(memory_latest(session_id=session.pk)).memory


def change(client: Client, session: AgentSession, **data: str) -> Any:
    return client.post(address("session_memory_change", session), data, follow=True)


class TestSessionTab:
    def test_it_shows_items_and_their_sources(self, owner_client: Client, stored: Any) -> None:
        text = owner_client.get(address("session_memory", stored)).content.decode()
        assert "use the clock" in text
        assert "evict &lt;b&gt;early&lt;/b&gt;" in text
        assert f"{address('session', stored)}?turn=1#turn-1" in text
        assert address("session_raw_message", stored, 2) in text
        assert "Revision 2" in text
        assert "src/pool.py (+1 −1 lines)" in text

    def test_an_empty_memory_explains_how_it_is_filled(self, owner_client: Client, project: Project) -> None:
        session = make_session(project)
        text = one_line(owner_client.get(address("session_memory", session)))
        assert "Memory is empty" in text
        settings = reverse("settings_memory", args=[project.slug])
        assert f'Automatic updates are off in this project. <a href="{settings}">Turn them on</a>' in text

    @pytest.mark.slow
    def test_the_history_is_paginated(self, owner_client: Client, stored: Any) -> None:
        for number in range(40):
            write(stored, next=f"step {number}")
        url = address("session_memory", stored)
        text = owner_client.get(url).content.decode()
        assert "Revision 42" in text
        assert "Revision 17<" not in text
        older = owner_client.get(f"{url}?before=18", headers={"HX-Request": "true"}).content.decode()
        assert "Revision 17<" in older
        assert "Working memory</h2>" not in older

    @pytest.mark.slow
    def test_only_rewritten_long_term_fields_are_highlighted(self, owner_client: Client, stored: Any) -> None:
        for number in range(6):
            write(stored, task=f"task {number}", next=f"step {number}")
        text = one_line(owner_client.get(address("session_memory", stored)))
        moves = dict(re.findall(r'<th scope="row">(\w+)</th> <td> <span class="tag ([^"]+)"', text))
        assert moves["Task"] == "motion-rewritten lasting"
        assert moves["Next"] == "motion-rewritten"

    @pytest.mark.slow
    def test_the_number_of_queries_is_constant(self, owner_client: Client, stored: Any) -> None:
        counts = []
        for _ in range(2):
            for number in range(20):
                write(stored, next=f"{len(counts)} {number}")
            with CaptureQueriesContext(connection) as captured:
                owner_client.get(address("session_memory", stored))
            counts.append(len(captured))
        assert counts[0] == counts[1] <= 14


class TestRevision:
    def test_it_is_compared_with_the_previous_one(self, owner_client: Client, stored: Any) -> None:
        text = owner_client.get(address("session_memory_revision", stored, 2)).content.decode()
        assert 'class="reworded"' in text
        assert 'class="added"' in text
        assert 'rel="prev"' in text
        assert 'rel="next"' not in text

    def test_it_can_be_compared_inline_with_any_other(self, owner_client: Client, stored: Any) -> None:
        url = address("session_memory_revision", stored, 2)
        text = owner_client.get(f"{url}?against=0&view=inline").content.decode()
        assert text.count('class="added"') == 3

    def test_a_comparison_shows_who_added_each_item(self, owner_client: Client, stored: Any) -> None:
        url = address("session_memory_revision", stored, 2)
        for view in ("side", "inline"):
            text = one_line(owner_client.get(f"{url}?against=0&view={view}"))
            assert text.count('<p class="under"> model · <a href="') == 3

    @pytest.mark.slow
    def test_the_user_who_changed_the_memory_is_named(
        self, owner_client: Client, owner: User, stored: Any
    ) -> None:
        change(owner_client, stored, op="add", field="decisions", item="no cache")
        pages = (address("session_memory", stored), address("session_memory_revision", stored, 3))
        tag = f'<span class="tag author-person">{owner.get_username()}</span>'
        assert all(tag in owner_client.get(page).text for page in pages)
        owner.delete()  # its audit events and revisions stay
        [row] = MemoryRevision.objects.filter(author="person")
        assert row.user is None

    def test_unchanged_items_are_counted_and_shown_on_request(
        self, owner_client: Client, stored: Any
    ) -> None:
        url = address("session_memory_revision", stored, 2)
        text = owner_client.get(f"{url}?view=inline").content.decode()
        assert '1 unchanged item. <a href="?view=inline&amp;show=all">' in text
        assert "a = 2" not in text
        whole = owner_client.get(f"{url}?show=all").content.decode()
        assert "a = 2" in whole
        assert '<a href="?show=changes">Show changes only' in whole
        assert "No differences." in owner_client.get(f"{url}?against=2").content.decode()

    @pytest.mark.parametrize("query", ["3/", "2/?against=9", f"{10**20}/"])
    def test_an_unknown_revision_is_404(self, owner_client: Client, stored: Any, query: str) -> None:
        assert owner_client.get(f"{address('session_memory', stored)}{query}").status_code == 404


class TestSharedMemory:
    @pytest.fixture
    def fact(self, stored: Any) -> SharedFact:
        return next(fact for fact in facts_propose(session=stored) if "clock" in fact.text)

    def decide(self, client: Client, fact: SharedFact, **data: str) -> Any:
        url = reverse("memory_fact", args=[fact.project.slug, fact.pk])
        return client.post(url, {"text": fact.text, **data}, follow=True)

    @pytest.mark.slow
    def test_a_fact_is_reviewed(self, owner_client: Client, owner: Any, fact: SharedFact) -> None:
        page = owner_client.get(reverse("memory", args=[fact.project.slug])).content.decode()
        assert "use the clock" in page
        self.decide(owner_client, fact, state="accepted", text="use a monotonic clock", expires="2030-01-31")
        fact.refresh_from_db()
        assert (fact.state, fact.text, fact.decided_by) == ("accepted", "use a monotonic clock", owner)
        assert fact.expires_at.isoformat().startswith("2030-01-31T23:59:59")
        self.decide(owner_client, fact, state="rejected")
        page = owner_client.get(
            reverse("memory", args=[fact.project.slug]) + "?state=rejected"
        ).content.decode()
        assert "use a monotonic clock" in page

    @pytest.mark.parametrize("data", [{"state": "old"}, {"state": "accepted", "expires": "x"}, {"text": ""}])
    def test_an_invalid_decision_is_reported(self, owner_client: Client, fact: SharedFact, data: Any) -> None:
        assert "The change was not saved: " in self.decide(owner_client, fact, **data).content.decode()

    @pytest.mark.slow
    def test_an_accepted_fact_is_offered_and_added(
        self, owner_client: Client, project: Project, fact: SharedFact
    ) -> None:
        self.decide(owner_client, fact, state="accepted")
        new = make_session(project, name="new", agent=fact.agent)
        url = address("session_memory", new)
        assert "Facts from other sessions" in owner_client.get(url).content.decode()
        owner_client.post(address("session_memory_add_shared", new), {"fact": str(fact.pk)})
        assert memory(new).decisions == ("use the clock",)
        assert "Facts from other sessions" not in owner_client.get(url).content.decode()

    def test_one_item_is_proposed_from_the_page(self, owner_client: Client, stored: Any) -> None:
        owner_client.post(
            address("session_memory_propose", stored), {"field": "decisions", "item": "use the clock"}
        )
        assert [fact.text for fact in SharedFact.objects.all()] == ["use the clock"]

    def test_expired_facts_are_deleted(
        self, owner_client: Client, project: Project, fact: SharedFact
    ) -> None:
        SharedFact.objects.update(confirmed_at="2020-01-01T00:00:00Z")
        url = reverse("memory_prune", args=[project.slug])
        assert b"deleted." in owner_client.post(url, follow=True).content
        assert not SharedFact.objects.exists()


class TestProjectSettings:
    def save(self, client: Client, project: Project, **data: str) -> Any:
        return client.post(reverse("settings_memory", args=[project.slug]), data, follow=True)

    def test_an_owner_turns_on_updates_and_adds_fields(self, owner_client: Client, project: Project) -> None:
        self.save(owner_client, project, upkeep="on", own="risks\r\nticket: text\r\n")
        project.refresh_from_db()
        assert project.memory_upkeep
        assert [(one["name"], one["single"]) for one in project.memory_fields] == [
            ("risks", False),
            ("ticket", True),
        ]
        page = owner_client.get(reverse("settings_memory", args=[project.slug])).content.decode()
        assert "ticket: text" in page
        shared = one_line(owner_client.get(reverse("memory", args=[project.slug])))
        assert "Automatic updates are on" in shared

    def test_properties_outside_the_form_are_kept(self, owner_client: Client, project: Project) -> None:
        Project.objects.update(memory_fields=[{"name": "risks", "single": False, "max_items": 3}])
        self.save(owner_client, project, own="risks\nticket")
        project.refresh_from_db()
        assert [one.get("max_items") for one in project.memory_fields] == [3, None]

    def test_an_invalid_field_name_is_rejected(self, owner_client: Client, project: Project) -> None:
        refused = self.save(owner_client, project, upkeep="on", own="Not A Name")
        assert refused.status_code == 422
        assert "the name &#x27;Not A Name&#x27; must start" in refused.content.decode()
        project.refresh_from_db()
        assert not project.memory_upkeep
