"""Working memory pages in a real browser: keyboard use, themes and phone width."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from accounts.models import Project
from compaction.memory.origins import Author
from sessions.models import AgentSession
from sessions.services.memory.proposals import facts_propose
from sessions.services.memory.revisions import Writer, memory_patch
from tests.browsing import PHONE, barriers, fits_in_width
from tests.pages.transcripts import make_session, reading_turn
from tests.plugins.reused import reused

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@reused
def stored(project: Project) -> AgentSession:
    session: AgentSession = make_session(project, [reading_turn(index) for index in range(3)])
    for number in range(30):
        changes = {"decisions": [f"choice {n}" for n in range(number // 6)], "next": f"step {number}"}
        memory_patch(session=session, changes=changes, writer=Writer(author=Author.MODEL, turn=1, position=1))
    facts_propose(session=session)
    return session


@pytest.fixture
def paths(stored: AgentSession) -> list[str]:
    at = [stored.project.slug, stored.pk]
    revision = reverse("session_memory_revision", args=[*at, 25])
    pages = [reverse("session_memory", args=at), revision, f"{revision}?against=1&view=inline"]
    return [*pages, reverse("memory", args=at[:1])]


def test_an_item_is_added_and_its_revision_is_opened(page_as: Any, owner: Any, paths: list[str]) -> None:
    page: Page = page_as(owner)
    page.goto(paths[0])
    page.get_by_text("Add an item", exact=True).press("Enter")
    page.locator(".add textarea").fill("Is it in CI too?")
    page.locator(".add select").select_option("open_questions")
    page.get_by_role("button", name="Add item", exact=True).press("Enter")
    expect(page.locator("#field-open_questions + ul")).to_contain_text("Is it in CI too?")
    page.get_by_role("link", name="Revision 31", exact=True).click()
    expect(page.locator(".compared .added")).to_contain_text("Is it in CI too?")
    page.get_by_role("link", name="‹ 30").click()
    expect(page.get_by_role("heading", name="Revision 30")).to_be_visible()


def test_a_stale_item_is_confirmed(page_as: Any, owner: Any, marked: AgentSession) -> None:
    page: Page = page_as(owner)
    page.goto(reverse("session_memory", args=[marked.project.slug, marked.pk]))
    expect(page.get_by_text("Stale: unittest has been in use since turn 0")).to_be_visible()
    assert barriers(page) == []
    page.get_by_role("button", name="Still true tests run with pytest").press("Enter")
    expect(page.get_by_text("confirmed: tests run with pytest")).to_be_visible()
    expect(page.get_by_role("button", name="Still true")).to_have_count(0)
    assert barriers(page) == []


def test_older_revisions_load_in_place(page_as: Any, owner: Any, paths: list[str]) -> None:
    page: Page = page_as(owner)
    page.goto(paths[0])
    expect(page.locator(".timeline > li")).to_have_count(25)
    page.get_by_role("link", name="Older revisions").click()
    expect(page.locator(".timeline > li")).to_have_count(30)


def test_accessibility_and_width(page_as: Any, owner: Any, paths: list[str]) -> None:
    page: Page = page_as(owner)
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size(PHONE)
    for path in paths:
        page.goto(path)
        assert fits_in_width(page), path
        assert all(
            page.locator(".compared").evaluate_all(
                "tables => tables.map(each => each.scrollWidth <= innerWidth)"
            )
        )
        assert barriers(page) == [], path


def test_the_labels_of_the_size_chart_are_readable_on_a_phone(
    page_as: Any, owner: Any, paths: list[str]
) -> None:
    page: Page = page_as(owner)
    page.set_viewport_size(PHONE)
    page.goto(paths[0])
    labels = page.locator(".memory-sizes .tick")
    heights = labels.evaluate_all("labels => labels.map(each => each.getBoundingClientRect().height)")
    assert min(heights) >= 11
    assert fits_in_width(page)
