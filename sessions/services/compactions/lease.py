"""A running compaction is leased: its worker renews the lease, and one that is gone cannot."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import Expression
from django.db.models.functions import Now

from sessions.models import Compaction

log = logging.getLogger(__name__)


def lease_end() -> Expression:
    """When a lease that is taken now runs out, by the database's clock: workers have clocks of their own."""
    end: Expression = Now() + timedelta(seconds=settings.CONTEXTAPP_LEASE_SECONDS)
    return end


@contextmanager
def lease_kept(compaction: Compaction) -> Iterator[None]:
    """Renews the lease while the block runs, however long a model takes."""
    done = Event()
    renewing = Thread(target=_renew, args=(compaction.pk, compaction.attempts, done), daemon=True)
    renewing.start()
    try:
        yield
    finally:
        done.set()
        renewing.join()


def _renew(compaction_id: UUID, attempt: int, done: Event) -> None:
    rows = Compaction.objects.filter(pk=compaction_id, state=Compaction.State.RUNNING, attempts=attempt)
    while not done.wait(settings.CONTEXTAPP_LEASE_SECONDS / 3):
        try:
            rows.update(lease_until=lease_end())
        except DatabaseError:
            log.warning("the lease of compaction %s was not renewed", compaction_id, exc_info=True)
        finally:
            connection.close()
