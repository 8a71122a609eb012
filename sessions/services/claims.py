"""Claims: one worker at a time processes a row, and rows of workers that died are processed again.

Compactions, memory extraction, webhook deliveries, reference scans and replays share this protocol. Their
models inherit `Claimable`.

1. A worker *claims* a row with one conditional UPDATE that increments `attempts` and sets `lease_until`. If
   several workers try at the same time, one of them succeeds. A row cannot be claimed while its lease runs.
2. The value of `attempts` identifies the claim. A worker writes its result only to rows that it *still owns*:
   those that have this value, and the state in which it claimed them.
3. A worker that needs more time *renews* its lease.
4. When it has finished, the worker *releases* the row, immediately or with a pause before the next attempt.
   The lease of a worker that died expires; the next sweep then dispatches the row again.

A worker loses its row when the state changes or `revoke` is called. Leases use the database's clock, because
the clocks of workers differ.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread
from typing import Any, LiteralString, TypeVar

from django.db import DatabaseError, connection
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from sessions.models import Claimable

log = logging.getLogger(__name__)

Row = TypeVar("Row", bound=Claimable)

#: A fixed duration, or a function of the number of the attempt, counted from 1.
Lease = timedelta | Callable[[int], timedelta]


#: At least the longest lease and pause, except where a service states another value.
LONGEST = timedelta(minutes=15)

#: `is_free` in direct statements, for the row `r`.
IS_FREE: LiteralString = """
(r.lease_until IS NULL OR r.lease_until <= statement_timestamp()
                       OR r.lease_until > statement_timestamp() + interval '15 minutes')
"""


def is_free(path: str = "", *, longest: timedelta | None = LONGEST) -> Q:
    """Match rows that can be claimed now. `path` is a lookup prefix that leads to them (`"state__"`).

    A lease that ends later than `longest` from now was set before the database's clock was set back, and no
    longer applies. `longest` must exceed the leases: a claim may wait for a statement that renews one.
    """
    free = Q(**{f"{path}lease_until": None}) | Q(**{f"{path}lease_until__lte": Now()})
    return free if longest is None else free | Q(**{f"{path}lease_until__gt": Now() + longest})


def claim(
    rows: QuerySet[Row], *, lease: Lease, longest: timedelta | None = LONGEST, **changes: Any
) -> Row | None:
    """Claim the one row that `rows` selects, and set the columns in `changes` with it.

    Returns None if the row is not free, no longer matches `rows`, or was claimed by another worker first.
    """
    row = rows.filter(is_free(longest=longest)).first()
    if row is None:
        return None
    attempt = row.attempts + 1
    length = lease if isinstance(lease, timedelta) else lease(attempt)
    unclaimed = rows.filter(is_free(longest=longest), pk=row.pk, attempts=row.attempts)
    if unclaimed.update(attempts=attempt, lease_until=Now() + length, **changes) != 1:
        return None
    for name, value in {"attempts": attempt, **changes}.items():
        setattr(row, name, value)
    return row


def still_own(row: Row) -> QuerySet[Row]:
    """Select the claimed row if no other worker has claimed it since."""
    rows: QuerySet[Row] = type(row)._default_manager.filter(pk=row.pk, attempts=row.attempts)
    return rows


def renew(own: QuerySet[Row], *, lease: timedelta) -> bool:
    """Extend a lease to `lease` from now. Returns False if the claim was lost."""
    return own.update(lease_until=Now() + lease) == 1


@contextmanager
def renewed(own: QuerySet[Row], *, lease: timedelta) -> Iterator[None]:
    """Renew a lease from a thread while the block runs."""
    done = Event()
    renewing = Thread(target=_renew_until, args=(own, lease, done), daemon=True)
    renewing.start()
    try:
        yield
    finally:
        done.set()
        renewing.join()


def _renew_until(own: QuerySet[Row], lease: timedelta, done: Event) -> None:
    while not done.wait(lease.total_seconds() / 3):
        try:
            renew(own, lease=lease)
        except DatabaseError:
            log.warning("could not renew the lease of %s", own.model.__name__, exc_info=True)
        finally:
            connection.close()


def release(own: QuerySet[Row], *, pause: timedelta | None = None, **changes: Any) -> bool:
    """Release a claimed row and set the columns in `changes`. `pause` delays the next claim.

    Returns False if the claim was lost; nothing is changed then.
    """
    until = Now() + pause if pause is not None else None
    return own.update(lease_until=until, **changes) == 1


def revoke(rows: QuerySet[Row], **changes: Any) -> int:
    """Take rows away from their workers and make them free. Returns the number of rows."""
    return rows.update(attempts=F("attempts") + 1, lease_until=None, **changes)
