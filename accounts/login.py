"""Logging in, at a pace that makes guessing passwords hopeless."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest
from django.utils import timezone

from accounts.models import LoginFailure

#: Failures count for so long; then they are forgotten, and deleted.
WINDOW = timedelta(minutes=15)
#: So many of one name from one address, and so many of any names from one address: more are refused unread.
MOST_OF_NAME, MOST_OF_ADDRESS = 5, 50


class LoginForm(AuthenticationForm):
    """The log-in of Django's, which after some failures refuses every password for a while.

    The failures lie in the database, where all processes of the server see them.
    """

    def clean(self) -> dict[str, Any]:
        name, address = self.cleaned_data.get("username", ""), address_of(self.request)
        self.throttled = is_throttled(name=name, address=address)
        if self.throttled:
            raise forms.ValidationError("Too many failures; try again in a quarter of an hour.", "throttled")
        try:
            data = super().clean()
        except forms.ValidationError:
            failure_note(name=name, address=address)
            raise
        LoginFailure.objects.filter(name=_key(name), address=address).delete()
        return data


def is_throttled(*, name: str, address: str) -> bool:
    recent = LoginFailure.objects.filter(address=address, at__gt=timezone.now() - WINDOW)
    return (
        recent.filter(name=_key(name)).count() >= MOST_OF_NAME
        or recent[:MOST_OF_ADDRESS].count() >= MOST_OF_ADDRESS
    )


def failure_note(*, name: str, address: str) -> None:
    LoginFailure.objects.filter(at__lte=timezone.now() - WINDOW).delete()
    LoginFailure.objects.create(name=_key(name), address=address)


def address_of(request: HttpRequest | None) -> str:
    """Who asks: the peer, or what the proxy in front of us says that its peer is."""
    if request is None:
        return ""
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "") if settings.BEHIND_TLS else ""
    return (forwarded.rsplit(",", 1)[-1].strip() or request.META.get("REMOTE_ADDR") or "")[:64]


def _key(name: str) -> str:
    return name.casefold()[:150]
