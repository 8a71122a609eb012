"""What the log of the server must not contain."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.test import Client

from accounts.keys import key_generate

pytestmark = pytest.mark.django_db


@pytest.fixture
def log() -> Iterator[StringIO]:
    """Return what the server's handler writes."""
    [handler] = (each for each in logging.getLogger().handlers if each.name == "stderr")
    assert isinstance(handler, logging.StreamHandler)
    written = StringIO()
    before = handler.setStream(written)
    yield written
    handler.setStream(before)


@pytest.mark.parametrize("page", ["invitations", "shared"])
def test_the_log_does_not_contain_the_tokens_of_links(
    page: str, log: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError

    token = secrets.token_urlsafe(32)
    assert Client(enforce_csrf_checks=True).post(f"/{page}/{token}/").status_code == 403
    monkeypatch.setattr("accounts.invitations.invitation_find", fail)
    monkeypatch.setattr("sessions.pages.sharing.views.shared_link", fail)
    assert Client(raise_request_exception=False).get(f"/{page}/{token}/").status_code == 500
    assert log.getvalue().count(f": /{page}/…/\n") == 2
    assert token not in log.getvalue()


def test_the_log_contains_the_prefix_of_an_api_key_without_its_secret(log: StringIO) -> None:
    key = key_generate()
    logging.getLogger("contextapp").warning("POST %s failed", f"/gateway/k/{key.text}/anthropic")
    assert log.getvalue().endswith(f"POST /gateway/k/ctx_{key.prefix}_…/anthropic failed\n")
