"""Tooltips and hints in a browser: with the mouse, the keyboard and touch, and for screen readers."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.conf import settings
from django.urls import reverse
from playwright.sync_api import expect

from sessions.models import DismissedHint
from sessions.pages.hints import HINTS
from sessions.services.sessions.lifecycle import NewSession, session_create
from tests.pages.transcripts import make_session

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_tooltips_by_keyboard_mouse_and_screen_reader(at, project):
    make_session(project)
    page = at(reverse("sessions", args=[project.slug]))
    header, tip = page.locator("th[title], th[data-tip]").first, page.locator("#tip")
    text = header.get_attribute("title")
    described = header.get_attribute("aria-describedby")
    assert page.locator(f"#{described}").text_content() == text
    page.keyboard.press("Tab")  # makes the next focus a keyboard focus
    header.focus()
    expect(tip).to_be_visible()
    expect(tip).to_have_text(text)
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    assert header.get_attribute("title") == text
    header.hover()
    expect(tip).to_be_visible()
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()


def test_the_mouse_shows_text_that_is_cut_off(at, project):
    title = "A title that needs more than two lines of the list " * 4
    make_session(project, name="long", title=title)
    make_session(project, name="short", title="Short")
    page = at(reverse("sessions", args=[project.slug]))
    page.get_by_role("link", name=title.strip()).hover()
    expect(page.locator("#tip")).to_have_text(title.strip())
    page.get_by_role("link", name="Short", exact=True).hover()
    expect(page.locator("#tip")).to_be_hidden()
    # Text that may be cut off has a title, but is no stop of the Tab key.
    agent = page.locator("td.names > span[title]").first
    expect(agent).to_have_attribute("data-tip-ready", "")
    assert agent.get_attribute("tabindex") is None


def test_terms_by_touch(browser, served_url, logged_in, member, project):
    cookie = logged_in(member).cookies[settings.SESSION_COOKIE_NAME]
    size = {"width": 390, "height": 800}
    with browser.new_context(base_url=served_url, has_touch=True, viewport=size) as context:
        context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": served_url}])
        page = context.new_page()
        page.goto(reverse("session_memory", args=[project.slug, make_session(project, name="b").pk]))
        term, tip = page.get_by_role("link", name="Working memory"), page.locator("#tip")
        term.tap()
        expect(tip).to_contain_text("survive every compaction")
        term.tap()
        page.wait_for_url("**/docs/concepts/glossary/#working-memory")


def test_hints_are_dismissed_one_by_one_or_all(at, page, member, project):
    make_session(project)
    at(reverse("sessions", args=[project.slug]))
    hint = page.get_by_role("complementary", name="Tip")
    expect(hint).to_contain_text("Tip 1 of 5")
    page.get_by_role("button", name="Got it").press("Enter")
    expect(hint).to_have_count(0)
    page.reload()
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(hint).to_have_count(0)

    page.goto(reverse("trends", args=[project.slug]))
    page.get_by_role("button", name="Hide all tips").click()
    expect(hint).to_have_count(0)
    assert DismissedHint.objects.filter(user=member).count() == len(HINTS) == 5
    page.locator(".menu-end summary").first.click()
    page.get_by_role("button", name="Show all tips").click()
    expect(hint).to_contain_text("Tip 5 of 5")


def test_hints_belong_to_pages_and_link_to_the_documentation(member_client, project):
    session = make_session(project)
    addresses = {
        "sessions": [project.slug],
        "session": [project.slug, session.pk],
        "session_past_prompt": [project.slug, session.pk, 0],
        "session_compactions": [project.slug, session.pk],
        "trends": [project.slug],
    }
    for hint in HINTS:
        page = member_client.get(reverse(hint.page, args=addresses[hint.page])).text
        assert f"Tip {hint.number} of 5" in page
        path = page.split("Learn more</a>")[0].rsplit('href="', 1)[1].split('"')[0]
        target, _, anchor = path.partition("#")
        found = member_client.get(target)
        assert found.status_code == 200
        assert not anchor or f'id="{anchor}"' in found.text


def test_pages_without_content_show_no_hint(member_client, project):
    def shown(id):
        return member_client.get(reverse("session", args=[project.slug, id]))

    assert "Got it" in shown(make_session(project).pk).text
    empty, _ = session_create(project_id=project.pk, new=NewSession())
    assert "Got it" not in shown(empty.pk).text
    missing = shown(uuid4())
    assert missing.status_code == 404
    assert "Got it" not in missing.text
