"""Settings pages: permissions, secrets that are shown once, and the audit log."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.actors import Actor
from accounts.models import ApiKey, AuditEvent, Membership, Project, Role
from accounts.selectors import api_key_find
from accounts.services.api_keys import api_key_create, api_key_revoke
from sessions.models import Webhook
from sessions.services.sessions.lifecycle import session_budget_change
from sessions.services.webhooks.subscriptions import webhook_create
from tests.locking import blocking
from tests.markup import address
from tests.pages.transcripts import make_session

pytestmark = pytest.mark.django_db


def test_a_form_from_another_address_names_the_settings_of_the_proxy(owner):
    """For example, if a proxy forwards the host without the port."""
    client = Client(
        enforce_csrf_checks=True, headers={"Host": "localhost", "Origin": "https://localhost:8443"}
    )
    client.force_login(owner)
    response = client.post(address("settings"), {"name": "Stolen"})
    assert response.status_code == 403
    page = response.content.decode()
    assert "https://localhost:8443" in page
    assert "http://localhost<" in page
    assert "CONTEXTAPP_TRUSTED_ORIGINS" in page


# -- Project ---------------------------------------------------------------------------------------


def test_saving_a_project_records_an_audit_event(project, owner, owner_client):
    owner_client.post(address("settings"), {"name": "Alpha 2", "summarizer_model": "claude-haiku-4-5"})
    project.refresh_from_db()
    assert (project.name, project.summarizer_model) == ("Alpha 2", "claude-haiku-4-5")
    event = AuditEvent.objects.get(action="project.changed")
    assert event.user == owner
    assert event.detail["name"] == {"from": "Alpha", "to": "Alpha 2"}


def test_an_empty_name_is_rejected(owner_client):
    response = owner_client.post(address("settings"), {"name": " "})
    assert response.status_code == 422
    assert b"This field is required" in response.content


def test_a_new_project_gets_a_unique_slug_and_an_owner(owner, owner_client):
    for name in ("Alpha!", "Alpha?"):
        assert owner_client.post(address("settings_new"), {"name": name}).status_code == 302
    assert set(Project.objects.values_list("slug", flat=True)) == {"alpha", "alpha-2", "alpha-3"}
    assert Membership.objects.filter(user=owner, role=Role.OWNER).count() == 3


def test_a_user_cannot_have_two_projects_with_the_same_name(project, owner_client):
    page = owner_client.post(address("settings_new"), {"name": project.name.upper()})
    assert page.status_code == 422
    assert "already a member of a project with this name" in page.text
    assert Project.objects.count() == 1


def test_the_page_of_a_rejected_new_project_can_be_opened_again(owner_client):
    page = owner_client.post(address("settings_new"), {"name": "?"})
    assert page.status_code == 422
    assert f'href="{address("settings")}" aria-current="page">Project' in page.text
    assert owner_client.get(address("settings_new")).url == address("settings")


# -- Members ---------------------------------------------------------------------------------------


def test_owners_change_roles_and_remove_members(project, other_project, owner_client, viewer):
    membership = Membership.objects.get(user=viewer)
    owner_client.post(address("settings_member", membership.pk), {"role": "member"})
    membership.refresh_from_db()
    assert membership.role == "member"
    theirs = Actor(user=viewer)
    api_key_create(project=project, name="ci", actor=theirs)
    api_key_create(project=project, name="expired", actor=theirs, expires_at=timezone.now())
    api_key_revoke(key=api_key_create(project=project, name="revoked", actor=theirs)[0])
    api_key_create(project=project, name="of another member")
    api_key_create(project=other_project, name="of another project", actor=theirs)
    removed = owner_client.post(address("settings_member_remove", membership.pk), follow=True)
    assert "1 API key of this user still works." in removed.text
    assert not Membership.objects.filter(user=viewer).exists()


def test_the_last_owner_cannot_be_removed(owner, owner_client, viewer):
    membership = Membership.objects.get(user=owner)
    page = owner_client.get(address("settings_members")).text
    assert address("settings_member", membership.pk) not in page
    assert address("settings_member_remove", membership.pk) not in page
    assert address("settings_member_remove", Membership.objects.get(user=viewer).pk) in page
    response = owner_client.post(address("settings_member_remove", membership.pk), follow=True)
    assert b"at least one owner" in response.content
    assert Membership.objects.filter(user=owner).exists()


@pytest.mark.django_db(transaction=True)
def test_one_of_two_owners_who_remove_each_other_at_once_stays(project, owner, viewer):
    Membership.objects.filter(user=viewer).update(role=Role.OWNER)
    removals = []
    for user, other in ((owner, viewer), (viewer, owner)):
        client = Client()
        client.force_login(user)
        url = address("settings_member_remove", Membership.objects.get(user=other).pk)
        removals.append(partial(client.post, url))
    with blocking(*removals) as jobs:
        Project.objects.select_for_update().get(pk=project.pk)
    assert [job.result().status_code for job in jobs] == [302, 302]
    assert Membership.objects.filter(project=project, role=Role.OWNER).count() == 1


def test_a_membership_of_another_project_is_404(owner_client, stranger):
    other = Membership.objects.get(user=stranger)
    assert owner_client.post(address("settings_member_remove", other.pk)).status_code == 404
    assert owner_client.post(address("settings_member", other.pk), {"role": "viewer"}).status_code == 404


# -- Keys ------------------------------------------------------------------------------------------


def test_a_key_is_shown_once_and_works_until_it_is_revoked(owner_client):
    response = owner_client.post(
        address("settings_keys"),
        {"name": "CI", "scopes": ["push"], "expires": "2999-01-31", "rate_limit": "60"},
    )
    secret = response.context["secret"]
    assert secret.encode() in response.content
    assert "no-store" in response["Cache-Control"]
    key = api_key_find(secret)
    assert key is not None
    assert (key.scopes, key.rate_limit, f"{key.expires_at:%Y-%m-%d}") == (["push"], 60, "2999-02-01")
    assert secret.encode() not in owner_client.get(address("settings_keys")).content
    owner_client.post(address("settings_key_revoke", key.pk))
    assert api_key_find(secret) is None
    assert (
        "expires: Feb 1, 2999, 00:00 UTC; requests per minute: 60"
        in owner_client.get(address("settings_audit")).text
    )


def test_members_create_and_revoke_only_their_own_keys(project, member, member_client, viewer_client):
    assert member_client.post(address("settings_keys"), {"name": "m", "scopes": ["push"]}).status_code == 200
    refused = member_client.post(address("settings_keys"), {"name": "m", "scopes": ["admin"]})
    assert refused.status_code == 403
    assert viewer_client.post(address("settings_keys"), {"name": "v", "scopes": ["read"]}).status_code == 403
    foreign, _ = api_key_create(project=project, name="olga's")
    assert member_client.post(address("settings_key_revoke", foreign.pk)).status_code == 403
    own = ApiKey.objects.get(created_by=member)
    assert member_client.post(address("settings_key_revoke", own.pk)).status_code == 302


def test_a_key_of_another_project_is_404(owner_client, other_project):
    key, _ = api_key_create(project=other_project, name="theirs")
    assert owner_client.post(address("settings_key_revoke", key.pk)).status_code == 404


def test_an_expiry_in_the_past_or_the_far_future_is_rejected(owner_client):
    yesterday = (timezone.now() - timedelta(days=1)).date()
    for day, error in ((yesterday, "Choose today or a later day."), ("9999-12-31", "Choose an earlier day")):
        response = owner_client.post(
            address("settings_keys"), {"name": "x", "scopes": ["read"], "expires": str(day)}
        )
        assert response.status_code == 422
        assert error in response.text
    assert not ApiKey.objects.exists()


def test_an_invitation_to_an_address_that_is_too_long_is_rejected(owner_client):
    data = {"email": f"{'a' * 60}@{'b' * 60}.{'c' * 60}.{'d' * 60}.{'e' * 60}.org", "role": "viewer"}
    assert owner_client.post(address("settings_members"), data).status_code == 422


# -- Webhooks --------------------------------------------------------------------------------------

HOOK = {
    "format": "json",
    "url": "https://example.org/hook?token=receiver-token",
    "events": ["compaction.finished"],
}


@pytest.mark.slow
def test_a_webhook_is_created_disabled_and_deleted(owner_client, viewer_client):
    response = owner_client.post(address("settings_webhooks"), HOOK)
    webhook = Webhook.objects.get()
    assert webhook.secret.encode() in response.content
    assert webhook.secret.encode() not in owner_client.get(address("settings_webhooks")).content
    assert b"receiver-token" not in viewer_client.get(address("settings_webhooks")).content
    for _ in range(2):  # the second is a tab that was opened before the first
        owner_client.post(address("settings_webhook_switch", webhook.pk), {"active": "0"})
        webhook.refresh_from_db()
        assert not webhook.is_active
    owner_client.post(address("settings_webhook_delete", webhook.pk))
    assert not Webhook.objects.exists()
    actions = AuditEvent.objects.filter(action__startswith="webhook").values_list("action", "user__username")
    assert {action for action, _ in actions} == {"webhook.created", "webhook.changed", "webhook.deleted"}
    assert {name for _, name in actions} == {"olga"}
    audit = viewer_client.get(address("settings_audit")).content
    assert b"example.org" in audit
    assert "enabled: yes → no" in audit.decode()
    assert b"receiver-token" not in audit


def test_the_audit_log_shows_a_changed_budget(viewer_client, project):
    session_budget_change(session=make_session(project, []), tokens=250_000, actor=Actor())
    audit = viewer_client.get(address("settings_audit")).text
    assert "Changed the prompt budget of session" in audit
    assert "budget: none → 250,000" in audit


def test_a_test_event_is_sent_to_an_enabled_webhook(owner_client, viewer_client, project):
    webhook = webhook_create(project=project, url=HOOK["url"], events=HOOK["events"])
    test = address("settings_webhook_test", webhook.pk)
    assert test not in viewer_client.get(address("settings_webhooks")).text
    assert viewer_client.post(test).status_code == 403
    assert "Test event queued." in owner_client.post(test, follow=True).text
    assert [delivery.event for delivery in webhook.deliveries.all()] == ["test"]
    assert "Sent a test event to webhook example.org" in viewer_client.get(address("settings_audit")).text
    owner_client.post(address("settings_webhook_switch", webhook.pk), {"active": "0"})
    assert test not in owner_client.get(address("settings_webhooks")).text
    assert "The webhook is disabled; enable it first." in owner_client.post(test, follow=True).text
    assert webhook.deliveries.count() == 1


@pytest.mark.slow
def test_a_delivery_is_redelivered_unless_it_is_pending(owner_client, viewer_client, project):
    webhook = webhook_create(project=project, url=HOOK["url"], events=HOOK["events"])
    delivery = webhook.deliveries.create(event="compaction.finished", body=b"{}", state="failed", attempts=8)
    again = address("settings_delivery_redeliver", delivery.pk)
    assert again in owner_client.get(address("settings_webhooks")).text
    assert again not in viewer_client.get(address("settings_webhooks")).text
    assert viewer_client.post(again).status_code == 403
    response = owner_client.post(again, follow=True)
    assert "Delivery queued again." in response.text
    assert again not in response.text
    assert "The delivery is already pending." in owner_client.post(again, follow=True).text
    assert "Redelivered an event to webhook example.org" in viewer_client.get(address("settings_audit")).text
    webhook.deliveries.update(state="sent")
    owner_client.post(address("settings_webhook_switch", webhook.pk), {"active": "0"})
    assert again not in owner_client.get(address("settings_webhooks")).text
    assert "The webhook is disabled; enable it first." in owner_client.post(again, follow=True).text


def test_an_invalid_url_is_rejected(owner_client):
    response = owner_client.post(address("settings_webhooks"), {**HOOK, "url": "ftp://example.org"})
    assert response.status_code == 422
    assert not Webhook.objects.exists()


def test_a_webhook_of_another_project_is_404(owner_client, other_project):
    webhook = webhook_create(project=other_project, url="https://example.org/", events=["compaction.started"])
    delivery = webhook.deliveries.create(event="compaction.started", body=b"{}", state="failed")
    for name in ("settings_webhook_switch", "settings_webhook_test", "settings_webhook_delete"):
        assert owner_client.post(address(name, webhook.pk)).status_code == 404
    assert owner_client.post(address("settings_delivery_redeliver", delivery.pk)).status_code == 404


# -- Audit log and queries --------------------------------------------------------------------------


def test_the_audit_log_is_paginated(project, owner_client):
    AuditEvent.objects.bulk_create(
        AuditEvent(project=project, action="test.event", target=f"t{number}") for number in range(150)
    )
    first = owner_client.get(address("settings_audit"))
    second = owner_client.get(address("settings_audit"), {"after": first.context["next"]})
    shown = [event.pk for page in (first, second) for event, *_ in page.context["events"]]
    assert len(shown) == len(set(shown)) == AuditEvent.objects.filter(project=project).count()
    assert second.context["next"] == ""


@pytest.mark.parametrize(("page", "field"), [("settings", "summarizer_model"), ("settings_memory", "model")])
def test_an_api_key_pasted_as_a_model_is_rejected(page, field, project, owner_client):
    secret = "sk-ant-api03-" + "a1B2" * 23
    refused = owner_client.post(address(page), {"name": "Ours", field: secret})
    assert refused.status_code == 422
    assert "This looks like a secret" in refused.content.decode()
    project.refresh_from_db()
    assert secret not in (project.summarizer_model, project.memory_model)


def test_the_audit_log_describes_events_in_plain_english(project, owner_client):
    owner_client.post(address("settings_memory"), {"upkeep": "on", "own": "ticket: text"})
    page = owner_client.get(address("settings_audit")).content.decode()
    assert "Changed project settings" in page
    assert "automatic memory updates: no → yes" in page
    assert "custom memory fields: none → name: ticket, single: yes" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "queries"),
    [
        ("settings", 3),
        ("settings_memory", 3),
        ("settings_members", 5),
        ("settings_keys", 4),
        ("settings_policy", 4),
        ("settings_webhooks", 5),
        ("settings_audit", 4),
    ],
)
def test_a_page_takes_few_queries(name, queries, project, owner_client, django_assert_num_queries):
    for number in range(3):
        api_key_create(project=project, name=f"k{number}")
        webhook_create(project=project, url=f"https://example.org/{number}", events=["compaction.started"])
        make_session(project, name=f"s-{number}")
    with django_assert_num_queries(queries):
        assert owner_client.get(address(name)).status_code == 200


def test_the_audit_log_shows_money_in_dollars(owner_client, project):
    at = [project.slug]
    owner_client.post(
        reverse("settings_budgets", args=at), {"period": "month", "dollars": "12.50", "time_zone": "UTC"}
    )
    owner_client.post(
        reverse("settings_prices", args=at),
        {"model": "own", "first": "2026-03-01", "uncached": "0.5", "cache_read": "0.05", "cache_write": "0.6"}
        | {"output": "2"},
    )
    page = owner_client.get(reverse("settings_audit", args=at)).content.decode()
    assert "Set the budget per month" in page
    assert "limit: $12.50" in page
    assert "output: $2.00" in page
    assert "cache read: $0.05" in page
    assert "microusd" not in page
