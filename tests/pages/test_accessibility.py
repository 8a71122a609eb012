"""Accessibility of the pages in both themes, checked with axe-core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from playwright.sync_api import Page, expect

from sessions.services.spending.cost_budgets import budget_set
from tests.browsing import PHONE, barriers
from tests.pages.served import address, compacted_session
from tests.pages.transcripts import active_session

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PROJECT_PAGE, SESSION_PAGE = {"slug"}, {"slug", "id"}


def url_names(parameters: set[str], resolver: URLResolver | None = None) -> Iterator[str]:
    """Yield the names of all URLs with these parameters, so that no new page is missed."""
    for pattern in (resolver or get_resolver()).url_patterns:
        if isinstance(pattern, URLResolver):
            yield from url_names(parameters, pattern)
        elif (
            isinstance(pattern, URLPattern) and set(pattern.pattern.converters) == parameters and pattern.name
        ):
            yield pattern.name


def is_document(page: Page, path: str) -> bool:
    """Return whether a GET request for this path returns a full HTML page, not a fragment, JSON or CSV."""
    response = page.request.get(path)
    return response.ok and b"<html" in response.body()[:2_000]


def check(page: Page, paths: Iterable[str]) -> None:
    for path in paths:
        page.goto(path)
        page.wait_for_load_state("networkidle")
        assert barriers(page) == [], path


def test_every_page_of_a_session_is_accessible(at, page, sample, project):
    page.emulate_media(reduced_motion="reduce")
    compacted = compacted_session(project, name="compacted", turns=6)
    sample_url = at(address("session", sample)).url
    paths = [
        f"{sample_url}?turn=20",
        address("session_text", sample, 0, 0),
        address("session_chart_table", sample),
        address("session_turn", compacted, 5),
        address("session_compaction", compacted, 1),
        address("session_recap", compacted, 1),
        address("session_compaction_diff", compacted, 1),
        f"{address('session_turn_diff', compacted, 5)}?turn=6&view=unified",
        f"{address('session_memory', compacted)}?turn=3&against=5",
        f"{address('session', compacted)}?role=tool",
        address("session_past_prompt_entry", compacted, 6, 1),
        *(path for name in url_names(SESSION_PAGE) if is_document(page, path := address(name, compacted))),
    ]
    assert address("session_prompt", compacted) in paths
    check(page, paths)


def test_every_page_of_a_project_is_accessible(page_as, owner, sample, project):
    page = page_as(owner)
    page.emulate_media(reduced_motion="reduce")
    budget_set(project=project, period="month", limit_microusd=5_000_000)
    urls = [reverse(name, args=[project.slug]) for name in url_names(PROJECT_PAGE) if name != "schema"]
    paths = [path for path in urls if is_document(page, path)]
    assert reverse("sessions", args=[project.slug]) in paths
    check(page, [*paths, f"{reverse('sessions', args=[project.slug])}?q=nothing"])


def test_an_empty_project_and_the_login_are_accessible(page, project, at):
    at(reverse("sessions", args=[project.slug]))
    assert barriers(page) == []
    page.context.clear_cookies()
    at("/login/")
    assert barriers(page) == []


def test_scripts_do_not_move_the_content(at, page, project):
    """What only works with scripts has its space from the start."""
    page.set_viewport_size(PHONE)
    path = address("session", active_session(project))
    parts = ("main", ".facts", ".tabs", ".tiles")
    page.route("**/js/*.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
    tops = [at(path).locator(part).bounding_box()["y"] for part in parts]
    page.unroute_all()
    page.reload()
    expect(page.locator(".facts [data-copy]")).to_be_visible()
    expect(page.get_by_role("button", name="Live")).to_be_visible()
    assert tops == [page.locator(part).bounding_box()["y"] for part in parts]


def test_the_not_found_page_is_accessible(at, page, complaints):
    at("/p/no-such/sessions/")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    assert barriers(page) == []
    assert "404" in complaints.pop()  # the browser reports it
