"""Create, change, test and delete webhooks, and send deliveries again."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from accounts.actors import SYSTEM, Actor
from accounts.models import Project
from accounts.services.audit import audit_record
from sessions.models import TEST_EVENT, Webhook, WebhookDelivery, WebhookFormat
from sessions.services.targets import url_check
from sessions.services.webhooks.deliveries import deliver, delivery_reopen

#: Webhooks per project. Each event is stored and sent once for each of them.
MAX_WEBHOOKS = 50


class TooManyWebhooks(Exception):
    """The project has reached the maximum number of webhooks."""


class WebhookDisabled(Exception):
    """The webhook is disabled, so nothing can be sent to it."""


class DeliveryPending(Exception):
    """The delivery has not ended yet, so it cannot be sent again."""


@transaction.atomic
def webhook_create(
    *,
    project: Project,
    url: str,
    events: Sequence[str],
    format: str = WebhookFormat.JSON,
    actor: Actor = SYSTEM,
) -> Webhook:
    """Create a webhook with a secret, which is shown only once.

    Raises `ForbiddenAddress`, `TooManyWebhooks`, and `Project.DoesNotExist` if it has just been deleted.
    """
    url_check(url, allow_private=settings.CONTEXTAPP_WEBHOOK_ALLOW_PRIVATE)
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if Webhook.objects.filter(project=project).count() >= MAX_WEBHOOKS:
        raise TooManyWebhooks(f"a project can have at most {MAX_WEBHOOKS} webhooks; delete one first")
    webhook = Webhook.objects.create(
        project=project,
        url=url,
        events=list(events),
        format=format,
        secret=f"whsec_{secrets.token_urlsafe(32)}",
    )
    detail = {"events": webhook.events, "format": format}
    audit_record(action="webhook.created", project=project, actor=actor, target=host_of(url), detail=detail)
    return webhook


@transaction.atomic
def webhook_update(*, webhook: Webhook, changes: dict[str, Any], actor: Actor) -> None:
    """Change `url`, `events`, `format` or `is_active`. The audit log keeps the previous values.

    Raises `ForbiddenAddress`, and `Webhook.DoesNotExist` if it has been deleted in the meantime.
    """
    if "url" in changes:
        url_check(changes["url"], allow_private=settings.CONTEXTAPP_WEBHOOK_ALLOW_PRIVATE)
    locked = Webhook.objects.select_for_update(no_key=True).get(pk=webhook.pk)
    detail = {
        name: {"from": _to_detail(name, before), "to": _to_detail(name, value)}
        for name, value in changes.items()
        if (before := getattr(locked, name)) != value
    }
    if not detail:
        return
    for name, value in changes.items():
        setattr(webhook, name, value)
    webhook.save(update_fields=list(detail))
    target = host_of(webhook.url)
    audit_record(action="webhook.changed", project=webhook.project, actor=actor, target=target, detail=detail)


def _to_detail(name: str, value: Any) -> Any:
    return host_of(value) if name == "url" else value


@transaction.atomic
def webhook_delete(*, webhook: Webhook, actor: Actor = SYSTEM) -> None:
    """Delete a webhook with its deliveries."""
    Webhook.objects.select_for_update().filter(pk=webhook.pk).first()  # waits for changes that report to it
    audit_record(action="webhook.deleted", project=webhook.project, actor=actor, target=host_of(webhook.url))
    webhook.delete()


@transaction.atomic
def webhook_test(*, webhook: Webhook, actor: Actor = SYSTEM) -> WebhookDelivery:
    """Send a test event, regardless of the webhook's events. Raises `WebhookDisabled`."""
    locked = _lock_enabled(webhook)
    payload = {"webhook": {"id": locked.pk}, "project": webhook.project.name}
    [delivery] = deliver([locked], TEST_EVENT, payload)
    audit_record(action="webhook.tested", project=webhook.project, actor=actor, target=host_of(locked.url))
    return delivery


@transaction.atomic
def webhook_redeliver(*, delivery: WebhookDelivery, actor: Actor) -> None:
    """Send a delivery again that was sent or has failed. Raises `WebhookDisabled`, `DeliveryPending`."""
    locked = _lock_enabled(delivery.webhook)
    if not delivery_reopen(delivery=delivery):
        raise DeliveryPending("the delivery is already pending")
    project = delivery.webhook.project
    audit_record(action="webhook.redelivered", project=project, actor=actor, target=host_of(locked.url))


def _lock_enabled(webhook: Webhook) -> Webhook:
    """Lock the webhook, so that it is not deleted before its delivery is stored."""
    locked = Webhook.objects.select_for_update(no_key=True).filter(pk=webhook.pk, is_active=True).first()
    if locked is None:
        raise WebhookDisabled("the webhook is disabled; enable it first")
    return locked


def host_of(url: str) -> str:
    """Return the host of a webhook's URL, which all members may see. The rest may contain a token."""
    return urlsplit(url).hostname or ""
