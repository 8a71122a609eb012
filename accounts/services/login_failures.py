"""Failed logins, counted in the database so that all server processes share them.

An attempt is recorded as a failure before the password is checked, under a lock of the address, and removed
if it succeeds. Parallel guesses therefore never exceed the limits.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection, transaction
from django.utils import timezone

from accounts.models import LoginFailure

#: Failures older than this no longer count and are deleted.
WINDOW = timedelta(hours=1)

#: Failures with a name from an address after which each further attempt has to wait: first `FIRST_DELAY`,
#: then twice as long after each failure, up to `MAX_DELAY`.
FREE_ATTEMPTS = 5
FIRST_DELAY, MAX_DELAY = timedelta(seconds=30), timedelta(minutes=15)

#: Failures from an address within `WINDOW` after which all its logins are rejected. Many users may share it.
MAX_PER_ADDRESS = 300


def attempt_begin(*, name: str, address: str) -> timedelta:
    """Record an attempt to log in. Returns zero, or the time to wait if it is rejected (and not recorded)."""
    now = timezone.now()
    with transaction.atomic():
        _lock(address)
        LoginFailure.objects.filter(at__lte=now - WINDOW).delete()
        wait = max(_wait_for_name(name, address, now), _wait_for_address(address, now))
        if not wait:
            LoginFailure.objects.create(name=_key(name), address=address, at=now)
    return wait


def attempt_succeeded(*, name: str, address: str) -> None:
    """Delete the recorded attempts with this name from this address."""
    LoginFailure.objects.filter(name=_key(name), address=address).delete()


def _wait_for_name(name: str, address: str, now: datetime) -> timedelta:
    failures = LoginFailure.objects.filter(name=_key(name), address=address).order_by("-at")
    times = list(failures.values_list("at", flat=True)[: FREE_ATTEMPTS * 4])
    if len(times) < FREE_ATTEMPTS:
        return timedelta()
    delay: timedelta = min(FIRST_DELAY * 2 ** (len(times) - FREE_ATTEMPTS), MAX_DELAY)
    return max(times[0] + delay - now, timedelta())


def _wait_for_address(address: str, now: datetime) -> timedelta:
    failures = LoginFailure.objects.filter(address=address).order_by("-at")
    oldest = failures.values_list("at", flat=True)[MAX_PER_ADDRESS - 1 : MAX_PER_ADDRESS].first()
    return oldest + WINDOW - now if oldest is not None else timedelta()


def _lock(address: str) -> None:
    """Serialize the attempts from an address until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"login {address}"])


def _key(name: str) -> str:
    return name.casefold()[:150]
