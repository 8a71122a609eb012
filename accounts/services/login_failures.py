"""Failed logins, counted in the database so that all server processes share them."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from accounts.models import LoginFailure

#: Failures older than this no longer count and are deleted.
WINDOW = timedelta(minutes=15)

#: Failures within `WINDOW` after which logins are rejected: per name and address, and per address.
MAX_PER_NAME, MAX_PER_ADDRESS = 5, 50


def is_throttled(*, name: str, address: str) -> bool:
    """Return whether logins with this name from this address are rejected."""
    recent = LoginFailure.objects.filter(address=address, at__gt=timezone.now() - WINDOW)
    return (
        recent.filter(name=_key(name)).count() >= MAX_PER_NAME
        or recent[:MAX_PER_ADDRESS].count() >= MAX_PER_ADDRESS
    )


def failure_record(*, name: str, address: str) -> None:
    """Record a failed login, and delete expired failures."""
    LoginFailure.objects.filter(at__lte=timezone.now() - WINDOW).delete()
    LoginFailure.objects.create(name=_key(name), address=address)


def failures_clear(*, name: str, address: str) -> None:
    """Delete the failures with this name from this address after a successful login."""
    LoginFailure.objects.filter(name=_key(name), address=address).delete()


def _key(name: str) -> str:
    return name.casefold()[:150]
