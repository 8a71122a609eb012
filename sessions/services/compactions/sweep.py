"""Recover compactions whose worker died or whose message was lost."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from sessions.models import Compaction
from sessions.services.claims import is_free
from sessions.services.compactions.background import compaction_retry_or_fail
from sessions.services.dispatch import COMPACTION_RUN, task_dispatch

#: Maximum number of compactions per pass, so that a long queue is not dispatched repeatedly as a whole.
BATCH = 200


def compactions_sweep() -> int:
    """Retry compactions of dead workers, and dispatch pending ones again. Returns the number dispatched.

    Concurrent sweeps dispatch each compaction once.
    """
    longest = timedelta(seconds=2 * settings.CONTEXTAPP_LEASE_SECONDS)
    stale = Compaction.objects.filter(is_free(longest=longest), state=Compaction.State.RUNNING)
    for compaction in stale.order_by("created_at")[:BATCH]:
        compaction_retry_or_fail(compaction=compaction, reason="the worker was lost")
    patience = timedelta(seconds=settings.CONTEXTAPP_REDISPATCH_SECONDS)
    # A time in the future was written before the clock was set back.
    recent = Q(dispatched_at__gte=Now() - patience, dispatched_at__lte=Now() + patience)
    pending = Compaction.objects.filter(state=Compaction.State.PENDING)
    lost = pending.filter(Q(dispatched_at=None) | ~recent)
    return sum(_dispatch_again(compaction) for compaction in lost.order_by("created_at")[:BATCH])


def _dispatch_again(compaction: Compaction) -> bool:
    not_dispatched = Compaction.objects.filter(pk=compaction.pk, dispatched_at=compaction.dispatched_at)
    return not_dispatched.update(dispatched_at=Now()) == 1 and task_dispatch(COMPACTION_RUN, compaction.pk)
