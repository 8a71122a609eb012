"""Webhooks: their signatures, and the calls about them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from contextapp_client import InvalidSignature, NotFound, verify_webhook

from sessions.services.webhooks.transport import signature
from tests.client.both import Connect

BODY = json.dumps({"event": "test", "at": "2026-01-01T00:00:00Z"}).encode()


def test_an_event_of_the_server_is_verified() -> None:
    now = int(time.time())
    assert verify_webhook(BODY, signature("whsec", BODY, at=now), "whsec")["event"] == "test"
    assert verify_webhook(BODY, signature("whsec", BODY, at=now - 900), "whsec", tolerance=1_000)


def test_other_requests_are_rejected() -> None:
    now = int(time.time())
    headers = [
        (None, "missing"),
        ("", "missing"),
        ("t=1,v1=00", "malformed"),
        ("t=١,v1=" + "0" * 64, "malformed"),
        (signature("other", BODY, at=now), "not signed"),
        (signature("whsec", BODY + b" ", at=now), "not signed"),
        (signature("whsec", BODY, at=now - 900), "old"),
    ]
    for header, reason in headers:
        with pytest.raises(InvalidSignature, match=reason):
            verify_webhook(BODY, header, "whsec")


def test_an_empty_secret_is_reported() -> None:
    with pytest.raises(ValueError, match="`secret` is empty"):
        verify_webhook(BODY, "", "")


@pytest.fixture
def admin(connect: Connect, served_url: str, admin_key: str) -> Any:
    return connect(served_url, admin_key)


def test_webhooks_are_created_changed_tested_and_deleted(admin: Any) -> None:
    made = admin.webhook_create("https://93.184.216.34/hook", events=["budget.reached"])
    assert made["secret"]
    assert [hook["id"] for hook in admin.webhooks()] == [made["id"]]
    assert admin.webhook_change(made["id"], events=["compaction.finished"])["events"] == [
        "compaction.finished"
    ]
    delivery = admin.webhook_test(made["id"])
    assert [each["id"] for each in admin.webhook_get(made["id"])["deliveries"]] == [delivery["id"]]
    assert not admin.webhook_change(made["id"], active=False)["active"]
    admin.webhook_delete(made["id"])
    with pytest.raises(NotFound):
        admin.webhook_get(made["id"])
