"""The login form, which limits the rate of password guesses."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest

from accounts.services.login_failures import failure_record, failures_clear, is_throttled


class LoginForm(AuthenticationForm):
    """Django's login form, which temporarily rejects all passwords after several failures."""

    def clean(self) -> dict[str, Any]:
        name, address = self.cleaned_data.get("username", ""), address_of(self.request)
        self.throttled = is_throttled(name=name, address=address)
        if self.throttled:
            raise forms.ValidationError("Too many failed logins. Try again in 15 minutes.", "throttled")
        try:
            data = super().clean()
        except forms.ValidationError:
            failure_record(name=name, address=address)
            raise
        failures_clear(name=name, address=address)
        return data


def address_of(request: HttpRequest | None) -> str:
    """Return the client's address: that of the peer, or behind a proxy, that of the proxy's peer."""
    if request is None:
        return ""
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "") if settings.BEHIND_TLS else ""
    return (forwarded.rsplit(",", 1)[-1].strip() or request.META.get("REMOTE_ADDR") or "")[:64]
