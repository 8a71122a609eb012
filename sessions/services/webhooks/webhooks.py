"""Webhooks: who is told, what is told, and telling it until it is heard.

A compaction never waits for one. What is to be told is written in the transaction of the change itself and
sent behind its commit; `compaction.started` is news too, and nobody is asked for leave.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from http.client import HTTPException
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts.actors import SYSTEM, Actor
from accounts.models import Project
from accounts.services import audit_record
from sessions.models import Compaction, Webhook, WebhookDelivery
from sessions.selectors.compactions import compaction_json
from sessions.services.dispatch import delivery_dispatch
from sessions.services.webhooks import http
from sessions.store import bodies

#: Pauses behind the tries (seconds). The eighth try is the last, 20.6 hours behind the first; the pause
#: behind it is for a worker that was lost with it.
PAUSES = (10, 60, 300, 1_800, 7_200, 21_600, 43_200, 43_200)

#: Deliveries that one sweep sends.
_BATCH = 200


def webhook_create(
    *,
    project: Project,
    url: str,
    events: Sequence[str],
    actor: Actor = SYSTEM,
) -> Webhook:
    """A new webhook with its secret, which is shown this once. Raises `ForbiddenAddress`."""
    http.url_check(url)
    webhook = Webhook.objects.create(
        project=project, url=url, events=list(events), secret=f"whsec_{secrets.token_urlsafe(32)}"
    )
    audit_record(action="webhook.created", project=project, actor=actor, target=url)
    return webhook


def webhook_update(*, webhook: Webhook, changes: dict[str, Any], actor: Actor = SYSTEM) -> None:
    """Changes of `url`, `events`, `is_active`. Raises `ForbiddenAddress`."""
    if "url" in changes:
        http.url_check(changes["url"])
    for name, value in changes.items():
        setattr(webhook, name, value)
    webhook.save(update_fields=list(changes))
    audit_record(action="webhook.changed", project=webhook.project, actor=actor, target=webhook.url)


def webhook_delete(*, webhook: Webhook, actor: Actor = SYSTEM) -> None:
    audit_record(action="webhook.deleted", project=webhook.project, actor=actor, target=webhook.url)
    webhook.delete()


def webhooks_emit(*, compaction: Compaction, event: str) -> None:
    """Tells the webhooks of the compaction's project. Call it in the transaction of what it tells."""
    project_id = compaction.session.project_id
    event_emit(project_id=project_id, event=event, told=_told(compaction), compaction=compaction)


def event_emit(
    *, project_id: UUID, event: str, told: Mapping[str, Any], compaction: Compaction | None = None
) -> None:
    """Tells the project's webhooks. Call it in the transaction of what it tells."""
    hooks = list(Webhook.objects.filter(project=project_id, is_active=True, events__contains=[event]))
    body = bodies.json_bytes({"event": event, "at": timezone.now(), **told}) if hooks else b""
    made = [WebhookDelivery(webhook=hook, compaction=compaction, event=event, body=body) for hook in hooks]
    if not made:
        return
    WebhookDelivery.objects.bulk_create(made)
    for delivery in made:
        transaction.on_commit(partial(delivery_dispatch, delivery.pk))


def _told(compaction: Compaction) -> dict[str, Any]:
    session = compaction.session
    return {
        "session": {"id": session.pk, "external_id": session.external_id},
        "compaction": compaction_json(compaction),
    }


def delivery_send(*, delivery_id: UUID) -> None:
    """One try of a delivery that is due. Two at once: one of them finds nothing to do."""
    due = WebhookDelivery.objects.select_related("webhook").filter(
        pk=delivery_id, state=WebhookDelivery.State.PENDING, next_at__lte=timezone.now()
    )
    delivery = due.first()
    if delivery is None or not _claim(delivery):
        return
    # Outside of any transaction: the other side may take its time.
    status, error = _try(delivery)
    heard = status is not None and 200 <= status < 300
    state = delivery.state
    if heard or not delivery.webhook.is_active or delivery.attempts >= len(PAUSES):
        state = WebhookDelivery.State.SENT if heard else WebhookDelivery.State.FAILED
    WebhookDelivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts).update(
        state=state, status=status, error=error[:500]
    )


def _claim(delivery: WebhookDelivery) -> bool:
    pause = timedelta(seconds=PAUSES[min(delivery.attempts, len(PAUSES) - 1)])
    mine = WebhookDelivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts)
    delivery.attempts += 1
    return mine.update(attempts=F("attempts") + 1, next_at=timezone.now() + pause) == 1


def _try(delivery: WebhookDelivery) -> tuple[int | None, str]:
    if not delivery.webhook.is_active:
        return None, "the webhook was switched off"
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "contextapp",
        "Contextapp-Event": delivery.event,
        "Contextapp-Delivery": str(delivery.pk),
    }
    try:
        target = http.target_of(delivery.webhook.url)
        status = http.post(target, secret=delivery.webhook.secret, body=bytes(delivery.body), headers=headers)
    except (http.ForbiddenAddress, OSError, HTTPException) as error:
        return None, f"{type(error).__name__}: {error}"
    return status, "" if 200 <= status < 300 else f"answered {status}"


def deliveries_sweep() -> int:
    """Sends what is due, be it a retry or what was lost on its way to a worker; how many."""
    due = WebhookDelivery.objects.filter(
        state=WebhookDelivery.State.PENDING, next_at__lte=timezone.now()
    ).order_by("next_at")
    return sum(map(delivery_dispatch, due.values_list("pk", flat=True)[:_BATCH]))
