"""Logins of users, which Django stores in the database."""

from __future__ import annotations

from django.contrib.sessions.backends.db import SessionStore


def logins_expire() -> None:
    """Delete the logins that have expired. Django only ignores them."""
    SessionStore.clear_expired()
