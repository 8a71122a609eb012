"""Deliveries that a user requests: test events and redeliveries."""

from __future__ import annotations

import hashlib
import hmac
import json
from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEvent, Project
from sessions.models import Webhook
from sessions.services.webhooks.deliveries import PAUSES, deliveries_sweep, delivery_send
from tests.api.client import Api, code
from tests.locking import blocking
from tests.webhooks.receiver import Receiver
from tests.webhooks.test_webhooks import URL, due_now, webhook_create

pytestmark = pytest.mark.django_db


def deliveries(api: Api, hook: dict[str, Any]) -> list[tuple[Any, ...]]:
    shown = api.get(f"webhooks/{hook['id']}/").json()["deliveries"]
    return [(row["id"], row["event"], row["state"], row["attempts"], row["status"]) for row in shown]


def test_a_test_event_is_sent_signed_and_retried_like_others(api: Api, other: Receiver) -> None:
    other.statuses = [500]
    hook = webhook_create(api, other.url, events=["budget.reached"])
    webhook_create(api, other.url)  # receives nothing
    response = api.post(f"webhooks/{hook['id']}/test/")
    assert response.status_code == 202
    id = response.json()["id"]
    assert deliveries(api, hook) == [(id, "test", "pending", 0, None)]
    delivery_send(delivery_id=id)
    assert deliveries(api, hook) == [(id, "test", "pending", 1, 500)]
    due_now()
    delivery_send(delivery_id=id)
    assert deliveries(api, hook) == [(id, "test", "sent", 2, 200)]
    first, (headers, body) = other.heard
    assert first[1] == body
    data = json.loads(body)
    assert (data["event"], data["webhook"]["id"], data["project"]) == ("test", hook["id"], "Alpha")
    assert (headers["Contextapp-Event"], headers["Contextapp-Delivery"]) == ("test", id)
    at, _, sign = headers["Contextapp-Signature"].removeprefix("t=").partition(",v1=")
    assert sign == hmac.new(hook["secret"].encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    assert AuditEvent.objects.get(action="webhook.tested").target == "127.0.0.1"


def test_a_test_event_in_slack_is_a_sentence_with_a_link(api: Api, other: Receiver, settings: Any) -> None:
    settings.CONTEXTAPP_PUBLIC_URL = "https://ctx.example.org"
    hook = webhook_create(api, other.url, format="slack")
    delivery_send(delivery_id=api.post(f"webhooks/{hook['id']}/test/").json()["id"])
    [(_, body)] = other.heard
    link = "<https://ctx.example.org/p/alpha/settings/webhooks/|Alpha>"
    assert json.loads(body) == {"text": f"{link}: this is a test event from contextapp."}


@pytest.mark.parametrize(("attempts", "state"), [(1, "sent"), (len(PAUSES), "failed")])
def test_a_redelivery_has_the_same_id_and_body(api: Api, other: Receiver, attempts: int, state: str) -> None:
    other.statuses = [503] * attempts if state == "failed" else []
    hook = webhook_create(api, other.url)
    id = api.post(f"webhooks/{hook['id']}/test/").json()["id"]
    again = f"webhooks/{hook['id']}/deliveries/{id}/redeliver/"
    response = api.post(again)
    assert (response.status_code, code(response)) == (409, "delivery_pending")
    for _ in range(attempts):
        due_now()
        delivery_send(delivery_id=id)
    assert [row[2:4] for row in deliveries(api, hook)] == [(state, attempts)]
    response = api.post(again)
    assert (response.status_code, response.json()["state"]) == (202, "pending")
    assert deliveries_sweep() == 1, "without the pause of the last attempt"
    delivery_send(delivery_id=id)
    assert deliveries(api, hook) == [(id, "test", "sent", attempts + 1, 200)]
    assert len(other.heard) == attempts + 1
    assert {(headers["Contextapp-Delivery"], body) for headers, body in other.heard} == {
        (id, other.heard[0][1])
    }
    assert AuditEvent.objects.filter(action="webhook.redelivered").count() == 1


def test_a_redelivery_that_fails_after_the_last_attempt_is_not_retried(api: Api, other: Receiver) -> None:
    other.statuses = [503] * 9
    hook = webhook_create(api, other.url)
    id = api.post(f"webhooks/{hook['id']}/test/").json()["id"]
    for _ in range(len(PAUSES)):
        due_now()
        delivery_send(delivery_id=id)
    api.post(f"webhooks/{hook['id']}/deliveries/{id}/redeliver/")
    delivery_send(delivery_id=id)
    assert deliveries(api, hook) == [(id, "test", "failed", 9, 503)]


def test_a_delivery_of_another_webhook_is_not_found(api: Api) -> None:
    hook, other = webhook_create(api), webhook_create(api)
    id = api.post(f"webhooks/{other['id']}/test/").json()["id"]
    assert api.post(f"webhooks/{hook['id']}/deliveries/{id}/redeliver/").status_code == 404


def test_nothing_is_sent_to_a_disabled_webhook(api: Api) -> None:
    hook = webhook_create(api)
    id = api.post(f"webhooks/{hook['id']}/test/").json()["id"]
    api.patch(f"webhooks/{hook['id']}/", {"active": False})
    delivery_send(delivery_id=id)
    failed = [(id, "test", "failed", 1, None)]
    assert deliveries(api, hook) == failed
    for address in ("test/", f"deliveries/{id}/redeliver/"):
        response = api.post(f"webhooks/{hook['id']}/{address}")
        assert (response.status_code, code(response)) == (409, "webhook_disabled")
    assert deliveries(api, hook) == failed


def test_webhooks_cannot_subscribe_to_test_events(api: Api) -> None:
    response = api.post("webhooks/", {"url": "https://hooks.example.com/", "events": ["test"]})
    assert code(response) == "invalid_field"


def test_a_project_has_a_limited_number_of_webhooks(
    api: Api, project: Project, other_project: Project, owner_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessions.services.webhooks.subscriptions.MAX_WEBHOOKS", 1)
    Webhook.objects.create(project=other_project, url=URL, secret="s", events=[])
    assert api.post("webhooks/", {"url": URL}).status_code == 201
    refused = api.post("webhooks/", {"url": URL})
    assert (refused.status_code, code(refused)) == (409, "too_many_webhooks")
    form = {"url": URL, "format": "json", "events": ["budget.reached"]}
    page = owner_client.post(reverse("settings_webhooks", args=[project.slug]), form)
    assert page.status_code == 422
    assert "A project can have at most 1 webhooks; delete one first." in page.text
    assert project.webhooks.count() == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_number_of_webhooks_is_limited_for_concurrent_requests(
    admin_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessions.services.webhooks.subscriptions.MAX_WEBHOOKS", 1)
    with blocking(partial(admin_api.post, "webhooks/", {"url": URL})) as jobs:
        webhook_create(admin_api)
    assert code(jobs[0].result()) == "too_many_webhooks"
    assert Webhook.objects.count() == 1
