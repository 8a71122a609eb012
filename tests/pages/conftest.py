"""The browser of a member who is logged in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Page

from sessions.services.samples import sample_load


@pytest.fixture
def complaints(page: Page) -> Iterator[list[str]]:
    """Whatever the browser complains about: errors of scripts, refusals of the content security policy."""
    heard: list[str] = []
    page.on("console", lambda said: heard.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: heard.append(str(error)))
    yield heard
    assert heard == []


@pytest.fixture
def at(page: Page, member_client: Client, served_url: str, complaints: list[str]) -> Callable[[str], Page]:
    """Opens addresses for the member, who is logged in."""
    cookie = member_client.cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": cookie, "url": served_url}])

    def opened(address: str) -> Page:
        page.goto(address)
        return page

    return opened


@pytest.fixture
def sample(project: Any) -> Any:
    return sample_load(project=project)
