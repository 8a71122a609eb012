"""Fixtures for page tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page

from sessions.services.samples.claude_code import sample_log_import
from tests.plugins.reused import reused


@pytest.fixture
def at(page_as: Callable[[User], Page], member: User) -> Callable[[str], Page]:
    """Open a URL in the browser, logged in as the member."""
    page = page_as(member)

    def opened(address: str) -> Page:
        page.goto(address)
        return page

    return opened


@reused
def sample(project: Any) -> Any:
    return sample_log_import(project=project)
