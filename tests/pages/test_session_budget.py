"""The token budget of a session: all members see it, members with write access change it."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from accounts.models import AuditEvent
from sessions.models import AgentSession, Compaction
from tests.markup import one_line
from tests.pages.served import address
from tests.pages.transcripts import make_session, reading_turn
from tests.plugins.reused import reused

HTMX = {"HX-Request": "true"}


@reused
def session(project: Any) -> AgentSession:
    made = make_session(project, [reading_turn(0, "a line of a file")])
    made.budget_tokens = 20_000
    made.save()
    return made


@pytest.mark.django_db
class TestTheForm:
    def test_a_change_is_saved_and_audited(self, member_client: Client, session: AgentSession) -> None:
        sent = {"tokens": "50000"}
        changed = member_client.post(address("session_budget", session), sent, follow=True)
        assert "Budget changed to 50,000 tokens. It applies from the next turn on." in changed.text
        assert "50,000 tokens</b>" in changed.text
        session.refresh_from_db()
        assert session.budget_tokens == 50_000
        event = AuditEvent.objects.get(action="session.budget_changed")
        assert event.detail["budget"] == {"from": 20_000, "to": 50_000}
        assert event.user is not None

    def test_a_blank_field_restores_the_default(self, member_client: Client, session: AgentSession) -> None:
        shown = one_line(member_client.post(address("session_budget", session), {"tokens": ""}, headers=HTMX))
        assert "<html" not in shown
        assert "Budget reset to the default, 184,000 tokens." in shown
        assert "184,000 tokens</b> <small>by default</small>" in shown
        session.refresh_from_db()
        assert session.budget_tokens is None

    @pytest.mark.parametrize(
        ("tokens", "error"),
        [
            ("60k", "Enter a whole number of tokens without separators or units, for example, 60000."),
            ("0", "Enter at least 1 token, or leave the field blank for the default."),
            ("2000000001", "Enter at most 2,000,000,000 tokens."),
        ],
    )
    def test_an_error_names_what_to_enter(
        self, member_client: Client, session: AgentSession, tokens: str, error: str
    ) -> None:
        page = member_client.post(address("session_budget", session), {"tokens": tokens})
        assert page.status_code == 422
        assert "Compact now" in page.text
        part = member_client.post(address("session_budget", session), {"tokens": tokens}, headers=HTMX)
        for shown in (page, part):
            assert error in shown.text
            assert f'value="{tokens}"' in shown.text
        session.refresh_from_db()
        assert session.budget_tokens == 20_000

    def test_links_of_the_page_with_an_error_lead_to_the_compactions(
        self, member_client: Client, session: AgentSession
    ) -> None:
        for number in range(1, 70):
            Compaction.objects.create(
                session=session, number=number, state="skipped", snapshot_position=0, turn_index=0
            )
        page = member_client.post(address("session_budget", session), {"tokens": "0"})
        [link] = re.findall(r'href="([^"]*\?before=\d+)"', page.text)
        assert member_client.get(urljoin(address("session_budget", session), link)).status_code == 200

    def test_a_viewer_cannot_change_it(self, viewer_client: Client, session: AgentSession) -> None:
        shown = viewer_client.get(address("session_compactions", session)).text
        assert "20,000 tokens</b>" in shown
        assert "Change budget" not in shown
        assert viewer_client.post(address("session_budget", session), {"tokens": "9"}).status_code == 403


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_the_budget_is_changed_with_the_keyboard(page_as: Any, member: Any, session: AgentSession) -> None:
    page: Page = page_as(member)
    page.goto(address("session_compactions", session))
    before = page.locator("#last-prompt").inner_text()
    field = page.get_by_label("New budget in tokens")
    expect(field).to_have_value("20000")
    field.fill("50")
    field.press("Enter")
    expect(page.get_by_role("status")).to_have_text(
        "Budget changed to 50 tokens. It applies from the next turn on."
    )
    expect(page.locator("#last-prompt")).not_to_have_text(before)
    expect(field).to_be_focused()
    field.fill("")
    field.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Budget reset to the default")
    expect(field).to_have_attribute("placeholder", "Default: 184,000")
