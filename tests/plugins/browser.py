"""Chromium, driven by Playwright."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests import serving
from tests.browsing import DESKTOP, record_complaints


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return the system's Chromium."""
    executable = serving.find_chromium()
    if executable is None:
        how = "Chromium or Chrome is not installed; `make test` installs it where it has permission"
        if os.environ.get("CI") == "true":
            pytest.fail(how)
        pytest.skip(how)
    with serving.chromium(executable) as browser:
        yield browser


@pytest.fixture(scope="session")
def _window(browser: Browser, _web_server: str) -> Iterator[BrowserContext]:
    """Return one window for all tests, with a page that stays open: opening a window takes longer than
    most tests."""
    context = browser.new_context(base_url=_web_server, viewport=DESKTOP)
    context.set_default_timeout(30_000)  # slow responses of a busy machine are not failures
    expect.set_options(timeout=30_000)
    context.new_page()
    yield context
    context.close()


@pytest.fixture
def complaints() -> list[str]:
    """Return the browser's errors and warnings for `page`. Tests remove those that they expect."""
    return []


@pytest.fixture
def page(_window: BrowserContext, served_url: str, complaints: list[str]) -> Iterator[Page]:
    """Return a new page (1440 × 900) without cookies; relative URLs resolve to `served_url`.

    The test fails if the browser has reported errors or warnings.
    """
    page = _window.new_page()
    record_complaints(page, complaints)
    yield page
    page.close()
    _window.clear_cookies()
    _window.clear_permissions()
    assert complaints == []


@pytest.fixture
def page_as(page: Page, served_url: str, logged_in: Callable[[User], Client]) -> Callable[[User], Page]:
    """Return a function that logs a user in to `page`: `page_as(owner).goto("/")`."""

    def page_of(user: User) -> Page:
        cookie = logged_in(user).cookies[settings.SESSION_COOKIE_NAME]
        page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": served_url}])
        return page

    return page_of
