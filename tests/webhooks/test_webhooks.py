"""Webhooks: deliveries, signatures, retries, and the API."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEvent, Project
from accounts.services.api_keys import api_key_create
from sessions.models import AgentSession, Compaction, Webhook, WebhookDelivery
from sessions.services.targets import ForbiddenAddress, target_of
from sessions.services.webhooks.deliveries import PAUSES, deliveries_sweep, delivery_send, event_emit
from sessions.services.webhooks.subscriptions import webhook_delete
from sessions.tasks import retention_run
from tests.api.client import Api, code
from tests.api.talk import push, whole_turn
from tests.locking import blocking
from tests.webhooks.receiver import Receiver

pytestmark = pytest.mark.django_db

URL = "https://hooks.example.com/ctx"


@pytest.fixture
def compact(api: Api, django_capture_on_commit_callbacks: Any) -> Callable[[], dict[str, Any]]:
    """Compact a session at once. Dispatched tasks stay in the broker."""

    def done() -> dict[str, Any]:
        api.post("sessions/", {"id": "s1", "policy": {"soft": 0, "hard": 0, "tail_share": 0.01}})
        for number in range(6):
            push(api, whole_turn(number))
        with django_capture_on_commit_callbacks(execute=True):
            data: dict[str, Any] = api.post("sessions/s1/compact/", {}).json()
        assert data["state"] == "done"
        return data

    return done


def webhook_create(api: Api, url: str = URL, **fields: Any) -> dict[str, Any]:
    response = api.post("webhooks/", {"url": url, **fields})
    assert response.status_code == 201, response.content
    data: dict[str, Any] = response.json()
    return data


def due_now() -> None:
    WebhookDelivery.objects.update(lease_until=timezone.now() - timedelta(seconds=1))


def test_start_and_end_are_reported(api: Api, other: Receiver, compact: Any) -> None:
    webhook_create(api, other.url)
    compacted = compact()
    for delivery in WebhookDelivery.objects.order_by("created_at", "pk"):
        delivery_send(delivery_id=delivery.pk)
    first, last = (json.loads(body) for _, body in other.heard)
    assert (first["event"], first["compaction"]["state"]) == ("compaction.started", "running")
    assert (last["event"], last["compaction"]["state"]) == ("compaction.finished", "done")
    assert last["session"]["external_id"] == "s1"
    for name in ("record", "tokens_before", "tokens_after", "turn", "number"):
        assert last["compaction"][name] == compacted[name]
    assert set(last["compaction"]) == set(compacted) - {"recap", "edits"}
    assert set(WebhookDelivery.objects.values_list("state", "status")) == {("sent", 200)}


@pytest.mark.slow
def test_slack_gets_messages_with_links(
    api: Api, other: Receiver, compact: Any, project: Project, settings: Any
) -> None:
    settings.CONTEXTAPP_PUBLIC_URL = "https://ctx.example.org"
    webhook_create(api, other.url, format="slack")
    compact()
    AgentSession.objects.update(external_id="<!channel>")
    event_emit(
        project_id=project.pk,
        event="tool_output.spike",
        payload={
            "session": {"id": AgentSession.objects.get().pk, "external_id": "<!channel>"},
            "turn": 7,
            "output_spike": {"tokens": 90_000, "mean": 1_200, "position": 3, "tool": "Bash"},
        },
    )
    for delivery in WebhookDelivery.objects.order_by("created_at", "pk"):
        delivery_send(delivery_id=delivery.pk)
    started, finished, spike = (json.loads(body)["text"] for _, body in other.heard)
    link = f"<https://ctx.example.org/p/alpha/sessions/{AgentSession.objects.get().pk}/|s1>"
    assert started == f"Compaction 1 of {link} started (user)."
    assert re.fullmatch(rf"Compaction 1 of {re.escape(link)}: done, [\d,]+ → [\d,]+ tokens\.", finished)
    assert "90,000 tokens, far more than usual (1,200)" in spike
    assert "<!channel>" not in spike


def test_a_revert_is_reported(api: Api, other: Receiver, compact: Any) -> None:
    compact()
    webhook_create(api, other.url, events=["compaction.finished"])
    assert api.post("sessions/s1/compactions/1/revert/").status_code == 200
    [delivery] = WebhookDelivery.objects.all()
    delivery_send(delivery_id=delivery.pk)
    [(_, body)] = other.heard
    data = json.loads(body)
    assert (data["event"], data["compaction"]["state"]) == ("compaction.finished", "reverted")


def test_the_last_attempt_is_as_documented() -> None:
    assert (len(PAUSES), round(sum(PAUSES[:-1]) / 3_600, 1)) == (8, 20.6)


@pytest.mark.slow
def test_each_request_is_signed(api: Api, other: Receiver, compact: Any) -> None:
    secret = webhook_create(api, other.url, events=["compaction.finished"])["secret"]
    compact()
    delivery = WebhookDelivery.objects.get()
    delivery_send(delivery_id=delivery.pk)
    [(headers, body)] = other.heard
    at, _, sign = headers["Contextapp-Signature"].removeprefix("t=").partition(",v1=")
    assert sign == hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    assert abs(int(at) - timezone.now().timestamp()) < 60
    assert headers["Contextapp-Delivery"] == str(delivery.pk)
    assert headers["Contextapp-Event"] == "compaction.finished"


@pytest.mark.slow
@pytest.mark.parametrize("status", [500, 404, 302])
def test_failed_deliveries_are_retried(
    api: Api, member_client: Client, project: Project, other: Receiver, compact: Any, status: int
) -> None:
    other.statuses = [status]
    webhook_create(api, other.url, events=["compaction.finished"])
    compact()
    delivery = WebhookDelivery.objects.get()
    delivery_send(delivery_id=delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.status, delivery.attempts) == ("pending", status, 1)
    assert "retrying" in member_client.get(reverse("settings_webhooks", args=[project.slug])).text
    delivery_send(delivery_id=delivery.pk)
    assert len(other.heard) == 1, "not before its time"
    due_now()
    delivery_send(delivery_id=delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.error) == ("sent", "")
    assert other.heard[0][1] == other.heard[1][1]


@pytest.mark.slow
def test_a_delivery_fails_after_the_last_attempt(api: Api, other: Receiver, compact: Any) -> None:
    webhook_create(api, "http://127.0.0.1:9/", events=["compaction.finished"])
    compact()
    delivery = WebhookDelivery.objects.get()
    for _ in range(len(PAUSES) + 2):
        due_now()
        delivery_send(delivery_id=delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts, delivery.status) == ("failed", len(PAUSES), None)
    assert "ConnectionRefusedError" in delivery.error


@pytest.mark.slow
def test_the_sweep_dispatches_lost_work(api: Api, other: Receiver, compact: Any) -> None:
    webhook_create(api, other.url)
    compact()
    assert deliveries_sweep() == 2
    WebhookDelivery.objects.update(state="sent")
    assert deliveries_sweep() == 0


@pytest.mark.slow
def test_a_disabled_webhook_receives_nothing(api: Api, other: Receiver, compact: Any) -> None:
    hook = webhook_create(api, other.url, events=["compaction.finished"])
    compact()
    assert api.patch(f"webhooks/{hook['id']}/", {"active": False}).json()["active"] is False
    delivery_send(delivery_id=WebhookDelivery.objects.get().pk)
    assert api.post("sessions/s1/compactions/1/revert/").status_code == 200
    assert other.heard == []
    assert WebhookDelivery.objects.get().state == "failed"


@pytest.mark.django_db(transaction=True)
def test_deleting_a_webhook_fails_no_change_that_reports_to_it(project: Project) -> None:
    hook = Webhook.objects.create(project=project, url=URL, secret="s", events=["budget.reached"])
    with blocking(partial(webhook_delete, webhook=hook)) as jobs:
        event_emit(project_id=project.pk, event="budget.reached", payload={})
    jobs[0].result()
    assert not Webhook.objects.exists()


def test_compactions_of_another_project_are_not_reported(
    api: Api, other_project: Project, other: Receiver, compact: Any
) -> None:
    Webhook.objects.create(project=other_project, url=other.url, secret="s", events=["compaction.finished"])
    compact()
    assert not WebhookDelivery.objects.exists()


def test_a_skipped_compaction_is_reported(api: Api, other: Receiver) -> None:
    webhook_create(api, other.url, events=["compaction.finished"])
    api.post("sessions/", {"id": "s1"})
    push(api, whole_turn(0))
    api.post("sessions/s1/compact/", {})
    assert json.loads(bytes(WebhookDelivery.objects.get().body))["compaction"]["state"] == "skipped"
    assert Compaction.objects.get().state == "skipped"


def test_old_deliveries_are_deleted_with_the_names_of_sessions_in_them(
    api: Api, other: Receiver, project: Project
) -> None:
    webhook_create(api, other.url, events=["tool_output.spike"])
    for state in ("sent", "failed", "pending", "sent"):
        event_emit(project_id=project.pk, event="tool_output.spike", payload={"session": {"id": "s1"}})
        WebhookDelivery.objects.filter(pk=WebhookDelivery.objects.latest("pk").pk).update(state=state)
    newest = WebhookDelivery.objects.latest("pk")
    WebhookDelivery.objects.exclude(pk=newest.pk).update(created_at=timezone.now() - timedelta(days=31))
    retention_run()
    assert sorted(WebhookDelivery.objects.values_list("state", flat=True)) == ["pending", "sent"]


class TestApi:
    def test_the_secret_is_shown_once(self, api: Api) -> None:
        hook = webhook_create(api)
        assert hook["secret"].startswith("whsec_")
        assert hook["events"] == [
            "budget.reached",
            "compaction.finished",
            "compaction.started",
            "tool_output.spike",
        ]
        shown = api.get(f"webhooks/{hook['id']}/")
        assert "secret" not in shown.json()
        assert hook["secret"].encode() not in shown.content + api.get("webhooks/").content

    def test_update_and_delete(self, api: Api) -> None:
        address = f"webhooks/{webhook_create(api)['id']}/"
        changed = api.patch(address, {"events": ["compaction.started"], "url": f"{URL}/2"}).json()
        assert (changed["url"], changed["events"]) == (f"{URL}/2", ["compaction.started"])
        assert api.patch(address, {"events": ["compaction.started"]}).json() == changed
        assert [hook["url"] for hook in api.get("webhooks/").json()["data"]] == [f"{URL}/2"]
        assert api.delete(address).status_code == 204
        assert api.get(address).status_code == 404
        actions = AuditEvent.objects.filter(action__startswith="webhook.").values_list("action", flat=True)
        assert sorted(actions) == ["webhook.changed", "webhook.created", "webhook.deleted"]
        changes = AuditEvent.objects.get(action="webhook.changed").detail
        assert changes["url"] == {"from": "hooks.example.com", "to": "hooks.example.com"}, "no paths"

    def test_deliveries_are_listed(self, api: Api, other: Receiver, compact: Any) -> None:
        hook = webhook_create(api, other.url)
        compact()
        shown = api.get(f"webhooks/{hook['id']}/").json()["deliveries"]
        assert {row["event"] for row in shown} == {"compaction.started", "compaction.finished"}
        assert {row["state"] for row in shown} == {"pending"}

    def test_the_admin_scope_is_required(self, api: Api, api_key: str) -> None:
        address = f"webhooks/{webhook_create(api)['id']}/"
        for response in (Api(api_key).get("webhooks/"), Api(api_key).delete(address)):
            assert code(response) == "missing_scope"

    def test_webhooks_of_other_projects_are_not_found(self, api: Api, other_project: Project) -> None:
        key = api_key_create(project=other_project, name="admin", scopes=["admin"])[1]
        address = f"webhooks/{webhook_create(api)['id']}/"
        assert Api(key).get("webhooks/").json()["data"] == []
        for response in (Api(key).get(address), Api(key).delete(address), Api(key).patch(address, {})):
            assert response.status_code == 404

    @pytest.mark.parametrize(
        "url",
        [
            "http://hooks.example.com/",
            "ftp://x.example/",
            "https://",
            "https://u:p@x.example/",
            "https://x:99999/",
            "https://x.example/a b",
            *("https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/", "https://0x7f.1/"),
        ],
    )
    def test_invalid_urls_are_rejected(self, api: Api, url: str, settings: Any) -> None:
        settings.CONTEXTAPP_WEBHOOK_ALLOW_PRIVATE = False
        hook = webhook_create(api)
        for method, address in (("POST", "webhooks/"), ("PATCH", f"webhooks/{hook['id']}/")):
            assert code(api.call(method, address, {"url": url})) == "invalid_field"
        assert [hook["url"] for hook in api.get("webhooks/").json()["data"]] == [URL]


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "10.1.2.3", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("[::1]", "[fd00::1]", "[fe80::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
        *("2130706433", "0x7f.1", "224.0.0.1", "[ff02::1]", "[::127.0.0.1]", "[::169.254.169.254]"),
        *("[::ffff:0:127.0.0.1]", "[fec0::1]", "[2001:0:7f00:1::]"),
        *("[3fff::1]", "[5f00::1]", "[100:0:0:1::1]", "[::ffff:0:0:7f00:1]", "[64:ff9b:1::a9fe:a9fe]"),
        *("192.0.0.192", "192.88.99.1", "0177.0.0.1", "127.1", "localhost.", "[::ffff:a9fe:a9fe]"),
    ],
)
def test_private_addresses_are_rejected(host: str) -> None:
    with pytest.raises(ForbiddenAddress):
        target_of(f"https://{host}/", allow_private=False)


def test_public_addresses_are_accepted() -> None:
    assert target_of("https://8.8.8.8:8443/x", allow_private=False).port == 8443
    assert target_of("https://[2606:4700::1111]/", allow_private=False).address == "2606:4700::1111"


@pytest.mark.slow
def test_an_address_that_became_private_receives_nothing(
    api: Api, other: Receiver, compact: Any, settings: Any
) -> None:
    webhook_create(api, other.url, events=["compaction.finished"])
    compact()
    settings.CONTEXTAPP_WEBHOOK_ALLOW_PRIVATE = False
    delivery_send(delivery_id=WebhookDelivery.objects.get().pk)
    assert other.heard == []
    assert WebhookDelivery.objects.get().error == "the URL must begin with https:// and name a host"


@pytest.mark.slow
def test_the_error_of_a_delivery_does_not_contain_the_path_of_the_url(
    api: Api, other: Receiver, compact: Any
) -> None:
    """All members see the error, but only owners see the URL, which may contain a token."""
    webhook_create(api, other.url, events=["compaction.finished"])
    Webhook.objects.update(url=f"{other.url}/token of the receiver")
    compact()
    delivery_send(delivery_id=WebhookDelivery.objects.get().pk)
    assert "must be ASCII, without spaces" in WebhookDelivery.objects.get().error
    assert "token" not in WebhookDelivery.objects.get().error
