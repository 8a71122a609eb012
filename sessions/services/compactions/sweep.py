"""Recovery: whatever was lost on its way to a worker, or with one, is found again in the rows."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from sessions.models import Compaction
from sessions.services.compactions.background import compaction_give_back
from sessions.services.dispatch import compaction_dispatch

#: Compactions that one pass takes up: a long queue is not sent again and again as a whole.
BATCH = 200


def sweep() -> int:
    """Gives back what dead workers held, and sends again what no worker has taken; how many were sent.

    Two sweeps at once do each compaction once.
    """
    stale = Compaction.objects.filter(state=Compaction.State.RUNNING, lease_until__lt=Now())
    for compaction in stale.order_by("created_at")[:BATCH]:
        compaction_give_back(compaction=compaction, reason="its worker was lost")
    overdue = Now() - timedelta(seconds=settings.CONTEXTAPP_REDISPATCH_SECONDS)
    lost = Compaction.objects.filter(
        Q(dispatched_at=None) | Q(dispatched_at__lt=overdue), state=Compaction.State.PENDING
    )
    return sum(_send_again(compaction) for compaction in lost.order_by("created_at")[:BATCH])


def _send_again(compaction: Compaction) -> bool:
    unsent = Compaction.objects.filter(pk=compaction.pk, dispatched_at=compaction.dispatched_at)
    return unsent.update(dispatched_at=Now()) == 1 and compaction_dispatch(compaction.pk)
