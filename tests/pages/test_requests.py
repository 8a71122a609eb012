"""Requests that htmx sends: progress, failures, an expired login."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, Route, expect

from accounts.models import Project
from compaction.memory.origins import Author
from sessions.models import AgentSession
from sessions.services.memory.revisions import Writer, memory_patch
from sessions.services.spending.rollups import rollups_fill
from tests.pages.transcripts import active_session, make_session, reading_turn
from tests.trends.turns import session_make, turn_make, turns_add

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def listing(project: Project, member: User, page_as: Callable[[User], Page]) -> Page:
    """Return the list of two sessions."""
    make_session(project, name="alpha")
    make_session(project, name="beta")
    page = page_as(member)
    page.goto(reverse("sessions", args=[project.slug]))
    expect(page.locator("[data-row]")).to_have_count(2)
    return page


def search(page: Page, words: str) -> None:
    page.locator("[data-search]").fill(words)
    page.locator("[data-search]").press("Enter")


def answered_with(page: Page, action: Callable[[Route], Any]) -> None:
    """Let `action` answer the requests of htmx instead of the server."""
    page.route(lambda url: "/sessions/?" in url or "?q=" in url, action)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda route: route.abort(), "did not respond"),
        (lambda route: route.fulfill(status=500, body=""), "Something went wrong on the server"),
        (lambda route: route.fulfill(status=503, body=""), "The database did not respond"),
        (lambda route: route.fulfill(status=403, body=""), "You do not have permission"),
    ],
    ids=["no connection", "500", "503", "403"],
)
def test_a_failure_is_reported_and_can_be_retried(listing, complaints, action, message):
    answered_with(listing, action)
    search(listing, "alpha")
    expect(listing.get_by_role("alert")).to_contain_text(message)
    expect(listing.get_by_text("Suggestions could not be loaded.")).to_be_visible()
    listing.unroute_all()
    listing.get_by_role("alert").get_by_role("button", name="Retry").click()
    expect(listing.locator("[data-row]")).to_have_count(1)
    expect(listing.get_by_role("alert")).to_be_hidden()
    complaints.clear()  # the browser reports the failed requests, perhaps after the page has shown them


def test_all_parts_of_a_page_that_failed_are_retried(listing, complaints, project):
    session = session_make(project, "used")
    turns_add(session, [turn_make(session, 0, datetime(2026, 3, 10, 12, tzinfo=UTC))])
    rollups_fill()
    listing.route("**/trends/prompts/**", lambda route: route.abort())
    listing.route("**/replay/rates/**", lambda route: route.fulfill(status=503, body=""))
    listing.goto(reverse("trends", args=[project.slug]) + "?first=2026-03-01&last=2026-03-31")
    expect(listing.locator(".outdated")).to_have_count(2)
    listing.unroute_all()
    listing.get_by_role("alert").get_by_role("button", name="Retry").click()
    expect(listing.locator("h2", has_text="Prompt size per day")).to_be_visible()
    expect(listing.locator("h2", has_text="References to removed content")).to_be_visible()
    expect(listing.get_by_role("alert")).to_be_hidden()
    complaints.clear()  # the browser reports the failed requests


def test_a_page_whose_updates_fail_says_so_until_they_succeed(page_as, complaints, member, project):
    page = page_as(member)
    page.goto(reverse("session", args=[project.slug, active_session(project).pk]))
    page.route("**/live/**", lambda route: route.abort())

    def update(event: str) -> None:
        with page.expect_event(event):
            page.evaluate("htmx.trigger('#live', 'live')")
        expect(page.locator("#live.htmx-request")).to_have_count(0)

    update("requestfailed")
    expect(page.get_by_role("alert")).to_be_hidden()
    update("requestfailed")
    expect(page.get_by_role("alert")).to_contain_text("The server is not responding")
    page.unroute_all()
    update("requestfinished")
    expect(page.get_by_role("alert")).to_be_hidden()
    page.route("**/live/**", lambda route: route.abort())
    update("requestfailed")
    update("requestfailed")
    page.unroute_all()
    page.context.clear_cookies(name="sessionid")
    update("requestfinished")
    expect(page.get_by_role("alert")).to_contain_text("You were logged out")
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
    complaints.clear()  # the browser reports the failed requests


def test_a_slow_request_shows_a_progress_bar(listing):
    waiting: list[Route] = []
    answered_with(listing, lambda route: waiting.append(route))
    search(listing, "alpha")
    expect(listing.get_by_role("progressbar")).to_be_visible()
    for route in waiting:
        route.continue_()
    expect(listing.locator("[data-row]")).to_have_count(1)
    expect(listing.get_by_role("progressbar")).to_be_hidden()


def log_in_again(page: Page, member: User) -> None:
    expect(page).to_have_url(re.compile(r"/login/\?next=/p/alpha/"))
    page.get_by_label("Username").fill(member.username)
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Log in").click()


def test_text_typed_before_the_login_expired_is_kept(page_as, member, project):
    """In a form that a script sends, and in one that the browser sends."""
    page = page_as(member)
    session = make_session(project)
    page.goto(reverse("session_turn", args=[project.slug, session.pk, 1]))
    comment, notes = page.get_by_label("Comment on turn 1"), page.get_by_label("Notes")
    comment.fill("The <file> was removed.")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Comment", exact=True).click()
    log_in_again(page, member)
    expect(comment).to_have_value("The <file> was removed.")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator(".comment-text")).to_have_text("The <file> was removed.")
    assert "was removed" not in page.evaluate("JSON.stringify(sessionStorage)")
    page.get_by_text("Edit title, tags and notes").click()
    notes.fill("Look at turn 1")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Save", exact=True).first.click()
    log_in_again(page, member)
    expect(notes).to_be_visible()
    expect(notes).to_have_value("Look at turn 1")
    page.reload()
    expect(notes).to_have_value("")


def test_all_fields_of_a_form_are_kept_when_the_login_expires(page_as, owner, project):
    """Among them the scopes of a key: with the default ones, it could do more than the user chose."""
    page = page_as(owner)
    page.goto(reverse("settings_keys", args=[project.slug]))
    page.get_by_label("Name").fill("Nightly")
    page.get_by_label("push").uncheck()
    page.get_by_label("Expires").fill("2050-12-24")
    page.get_by_label("Requests per minute").fill("7")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_role("status")).to_contain_text("You were logged out before the form was submitted")
    log_in_again(page, owner)
    expect(page.get_by_role("status")).to_contain_text("Check it and submit it again")
    expect(page.get_by_label("Name")).to_have_value("Nightly")
    expect(page.get_by_label("push")).not_to_be_checked()
    expect(page.get_by_label("read")).to_be_checked()
    expect(page.get_by_label("Expires")).to_have_value("2050-12-24")
    expect(page.get_by_label("Requests per minute")).to_have_value("7")


def test_updates_of_a_page_do_not_leave_it_when_the_login_expires(page_as, member, project):
    page = page_as(member)
    page.goto(reverse("session", args=[project.slug, active_session(project).pk]))
    page.get_by_text("Edit title, tags and notes").click()
    page.get_by_label("Notes").fill("Look at turn 1")
    page.context.clear_cookies(name="sessionid")
    page.evaluate("htmx.trigger('#live', 'live')")
    expect(page.get_by_role("alert")).to_contain_text("You were logged out")
    page.get_by_role("button", name="Save", exact=True).first.click()
    log_in_again(page, member)
    expect(page.get_by_label("Notes")).to_have_value("Look at turn 1")


def test_fields_that_may_contain_a_secret_are_not_kept(page_as, owner, project):
    page = page_as(owner)
    page.goto(reverse("settings_webhooks", args=[project.slug]))
    page.get_by_label("URL").fill("https://hooks.example.com/a-token")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Create webhook").click()
    expect(page).to_have_url(re.compile("/login/"))
    assert "a-token" not in page.evaluate("JSON.stringify(sessionStorage)")


def test_text_is_kept_in_the_form_among_those_of_the_same_kind(page_as, member, project):
    """All forms of the working memory have the same action."""
    page = page_as(member)
    session = make_session(project)
    memory_patch(
        session=session,
        changes={"decisions": ["Use Postgres.", "Use htmx."]},
        writer=Writer(author=Author.PERSON),
    )
    page.goto(reverse("session_memory", args=[project.slug, session.pk]))
    page.get_by_text("Edit Use htmx.").click()
    page.get_by_label("New text").nth(1).fill("Use htmx 2.")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Save text").click()
    log_in_again(page, member)
    expect(page.get_by_label("New text").nth(1)).to_have_value("Use htmx 2.")
    page.get_by_role("button", name="Save text").click()
    expect(page.locator(".item")).to_have_text(["Use Postgres.", "Use htmx 2."])


def test_text_is_kept_although_another_user_changed_other_labels(page_as, member, project):
    page = page_as(member)
    session = make_session(project)
    page.goto(reverse("session_turn", args=[project.slug, session.pk, 1]))
    page.get_by_text("Edit title, tags and notes").click()
    page.get_by_label("Notes").fill("Look at turn 1")
    page.context.clear_cookies(name="sessionid")
    AgentSession.objects.update(title="Renamed")
    page.get_by_role("button", name="Save", exact=True).first.click()
    log_in_again(page, member)
    expect(page.get_by_label("Notes")).to_have_value("Look at turn 1")
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.get_by_label("Notes")).to_be_hidden()
    session.refresh_from_db()
    assert (session.title, session.notes) == ("Renamed", "Look at turn 1")


def test_a_form_can_be_submitted_after_another_login(page_as, member, project):
    page = page_as(member)
    session = make_session(project)
    page.goto(reverse("session_turn", args=[project.slug, session.pk, 1]))
    page.context.clear_cookies()
    page_as(member)
    other = page.context.new_page()
    other.goto(page.url)  # sets a new token
    other.close()
    page.get_by_label("Comment on turn 1").fill("Seen.")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator(".comment-text")).to_have_text("Seen.")


def test_an_expired_login_leads_to_the_login_page_and_back(listing, complaints, member):
    listing.context.clear_cookies()
    search(listing, "alpha")
    log_in_again(listing, member)
    expect(listing.locator("[data-row]").first).to_be_visible()
    complaints.clear()  # the suggestions of the filter were requested too, and got 401


def test_the_palette_reports_a_failed_search(listing, complaints):
    listing.route("**/find/?q=*", lambda route: route.abort())
    listing.keyboard.press("Control+k")
    listing.keyboard.type("alp")
    error = listing.get_by_role("dialog").get_by_role("alert")
    expect(error).to_contain_text("The search failed.")
    expect(listing.get_by_role("option")).to_contain_text(["Search messages for"])
    listing.unroute_all()
    listing.keyboard.type("h")
    expect(error).to_be_hidden()
    complaints.clear()  # the browser reports the failed request


def test_a_view_of_the_chart_that_fails_can_be_loaded_again(listing, complaints, project):
    session = make_session(project, [reading_turn(index) for index in range(3)])
    listing.goto(reverse("session", args=[project.slug, session.pk]))
    expect(listing.locator(".chart canvas")).to_be_visible()
    listing.route("**/chart/?*tools=1*", lambda route: route.abort())
    listing.get_by_role("button", name="By tool").click()
    error = listing.locator(".chart").get_by_role("status")
    expect(error).to_contain_text("Could not load the chart")
    listing.get_by_role("button", name="Total").click()
    expect(listing.locator(".chart canvas")).to_be_visible()
    listing.get_by_role("button", name="By tool").click()
    expect(error).to_be_visible()
    listing.unroute_all()
    error.get_by_role("button", name="Try again").click()
    expect(listing.locator(".chart canvas")).to_be_visible()
    expect(error).to_have_count(0)
    complaints.clear()  # the browser reports the failed requests
