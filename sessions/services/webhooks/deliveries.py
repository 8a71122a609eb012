"""Webhook deliveries: one row for each event and webhook, sent until the receiver accepts it.

A delivery is stored in the transaction of the change that it reports, and sent after the commit. The change
never waits for the receiver.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from http.client import HTTPException
from threading import BoundedSemaphore, Lock
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import F, Func, IntegerField, Value, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from sessions.models import AgentSession, Compaction, Webhook, WebhookDelivery, WebhookEvent, WebhookFormat
from sessions.selectors.compactions.records import compaction_json
from sessions.services.claims import claim, is_free, still_own
from sessions.services.commits import after_commit
from sessions.services.dispatch import WEBHOOK_DELIVER, task_dispatch
from sessions.services.targets import ForbiddenAddress, target_of
from sessions.services.webhooks.messages import slack_message
from sessions.services.webhooks.transport import post
from sessions.store import bodies

log = logging.getLogger(__name__)

#: Pause after each attempt, in seconds. The eighth attempt is the last, 20.6 hours after the first; the pause
#: after it applies only if the worker died during that attempt.
PAUSES = (10, 60, 300, 1_800, 7_200, 21_600, 43_200, 43_200)

#: Time after which a delivery that was sent or has failed is deleted.
KEPT = timedelta(days=30)

#: Maximum number of deliveries per sweep.
_BATCH = 200

#: Requests that a worker process sends at the same time, and those of one webhook among them.
_THREADS, _PER_WEBHOOK = 16, 4

#: Django's `select_for_update` has no lock that several transactions can hold.
_ACTIVE = """
SELECT * FROM agent_sessions_webhook
WHERE project_id = %s AND is_active AND events @> ARRAY[%s]::varchar[]
FOR KEY SHARE
"""

#: Limits the connections to the database that these threads have at the same time.
_connections = BoundedSemaphore(4)

_lock = Lock()
_in_progress: Counter[UUID] = Counter()


def compaction_event_emit(*, compaction: Compaction, event: str) -> None:
    """Report a compaction to the webhooks of its project. Call it in the transaction of the change."""
    session = compaction.session
    if hooks := _webhooks(session.project_id, event):
        payload = {
            "session": {"id": session.pk, "external_id": session.external_id},
            "compaction": compaction_json(compaction),
        }
        deliver(hooks, event, payload, compaction)


def event_emit(*, project_id: UUID, event: str, payload: Mapping[str, Any]) -> None:
    """Report an event to the project's webhooks. Call it in the transaction of the change."""
    if hooks := _webhooks(project_id, event):
        deliver(hooks, event, payload)


def _webhooks(project_id: UUID, event: str) -> Sequence[Webhook]:
    """Return the project's webhooks that receive the event. None is deleted before the change is committed.

    Otherwise, the deletion of a webhook could fail the changes that report to it.
    """
    return list(Webhook.objects.raw(_ACTIVE, [project_id, event]))


def deliver(
    hooks: Sequence[Webhook], event: str, payload: Mapping[str, Any], compaction: Compaction | None = None
) -> Sequence[WebhookDelivery]:
    """Store a delivery for each webhook, and send them after the commit."""
    sent = {format: _body(format, hooks[0], event, payload) for format in {hook.format for hook in hooks}}
    rows = [
        WebhookDelivery(webhook=hook, compaction=compaction, event=event, body=sent[hook.format])
        for hook in hooks
    ]
    WebhookDelivery.objects.bulk_create(rows)
    for delivery in rows:
        after_commit(task_dispatch, WEBHOOK_DELIVER, delivery.pk)
    return rows


def _body(format: str, hook: Webhook, event: str, payload: Mapping[str, Any]) -> bytes:
    if format == WebhookFormat.SLACK:
        return bodies.json_bytes(slack_message(slug=hook.project.slug, event=event, payload=payload))
    return bodies.json_bytes({"event": event, "at": timezone.now(), **payload})


def delivery_reopen(*, delivery: WebhookDelivery) -> bool:
    """Make a delivery pending again, and send it after the commit. Returns False if it is pending already.

    `attempts` is not reset, because it identifies the claims of workers.
    """
    ended = WebhookDelivery.objects.exclude(state=WebhookDelivery.State.PENDING).filter(pk=delivery.pk)
    if not ended.update(state=WebhookDelivery.State.PENDING, lease_until=None):
        return False
    delivery.state = WebhookDelivery.State.PENDING
    after_commit(task_dispatch, WEBHOOK_DELIVER, delivery.pk)
    return True


def delivery_send(*, delivery_id: UUID) -> None:
    """Try once to send a pending delivery, unless its pause is not over or another worker has claimed it."""
    pending = WebhookDelivery.objects.select_related("webhook").filter(
        pk=delivery_id, state=WebhookDelivery.State.PENDING
    )
    with _connection():
        delivery = claim(pending, lease=_pause_after, longest=None)
    if delivery is None:
        return
    # Without a transaction or a connection to the database: the receiver may be slow.
    status, error = _attempt(delivery)
    is_accepted = status is not None and 200 <= status < 300
    state = delivery.state
    if is_accepted or not delivery.webhook.is_active or delivery.attempts >= len(PAUSES):
        state = WebhookDelivery.State.SENT if is_accepted else WebhookDelivery.State.FAILED
    # The lease is kept: it is the pause before the next attempt.
    with _connection():
        still_own(delivery).update(state=state, status=status, error=error[:500])


@contextmanager
def _connection() -> Iterator[None]:
    """Close the connection to the database afterwards, unless a transaction needs it."""
    with _connections:
        try:
            yield
        finally:
            if not connection.in_atomic_block:
                connection.close()


def delivery_send_in_background(*, delivery_id: UUID) -> None:
    """Try to send a delivery in a thread, so that slow receivers do not hold up the tasks of a worker.

    If the webhook has too many requests in progress, the delivery is left to the next sweep. So is one whose
    worker ends before its thread.
    """
    webhook = WebhookDelivery.objects.filter(pk=delivery_id).values_list("webhook_id", flat=True).first()
    with _lock:
        if webhook is None or _in_progress[webhook] >= _PER_WEBHOOK:
            return
        _in_progress[webhook] += 1
    _threads().submit(_send_in_thread, delivery_id, webhook)


def _send_in_thread(delivery_id: UUID, webhook: UUID) -> None:
    try:
        delivery_send(delivery_id=delivery_id)
    except Exception:
        log.exception("webhook delivery %s", delivery_id)
    finally:
        with _lock:
            _in_progress[webhook] -= 1


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="webhook")


def _pause_after(attempt: int) -> timedelta:
    return timedelta(seconds=PAUSES[min(attempt, len(PAUSES)) - 1])


def _attempt(delivery: WebhookDelivery) -> tuple[int | None, str]:
    """Send a delivery. Returns the HTTP status, if there was one, and the error message, if any."""
    if not delivery.webhook.is_active:
        return None, "the webhook was disabled"
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "contextapp",
        "Contextapp-Event": delivery.event,
        "Contextapp-Delivery": str(delivery.pk),
    }
    try:
        allow_private = settings.CONTEXTAPP_WEBHOOK_ALLOW_PRIVATE
        target = target_of(delivery.webhook.url, allow_private=allow_private)
        status = post(target, secret=delivery.webhook.secret, body=bytes(delivery.body), headers=headers)
    except ForbiddenAddress as error:
        return None, str(error)
    except (OSError, HTTPException) as error:
        return None, f"{type(error).__name__}: {error}"
    return status, "" if 200 <= status < 300 else f"the receiver responded with {status}"


def deliveries_sweep() -> int:
    """Dispatch pending deliveries whose pause is over or whose message was lost. Returns their number.

    Takes the oldest of each webhook first, so that a receiver that does not respond cannot fill each sweep.
    """
    pending = WebhookDelivery.objects.filter(is_free(longest=None), state=WebhookDelivery.State.PENDING)
    since = F("lease_until").asc(nulls_first=True)
    place = Window(RowNumber(), partition_by=F("webhook_id"), order_by=since)
    ids = pending.annotate(place=place).order_by("place", since).values_list("pk", flat=True)[:_BATCH]
    return sum(task_dispatch(WEBHOOK_DELIVER, id) for id in ids)


def deliveries_cancel(*, session: AgentSession) -> None:
    """Delete the pending deliveries about tool outputs of a session that is being deleted.

    Those about its compactions are deleted with them.
    """
    contains = Func(
        Value(str(session.pk).encode()),
        F("body"),
        function="position",
        arg_joiner=" IN ",
        output_field=IntegerField(),
    )
    spikes = WebhookDelivery.objects.filter(
        webhook__project_id=session.project_id,
        event=WebhookEvent.SPIKE,
        state=WebhookDelivery.State.PENDING,
    )
    spikes.annotate(place=contains).filter(place__gt=0).delete()


def deliveries_expire() -> int:
    """Delete the old deliveries, which name sessions that may be deleted by now. Returns their number."""
    old = WebhookDelivery.objects.filter(created_at__lt=timezone.now() - KEPT)
    return old.exclude(state=WebhookDelivery.State.PENDING).delete()[0]
