"""The forms that check a password, which limit the rate of guesses."""

from __future__ import annotations

from datetime import datetime
from ipaddress import IPv6Address, IPv6Network
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView
from django.contrib.messages.views import SuccessMessageMixin
from django.http import HttpRequest
from django.utils import timezone
from django.utils.timesince import timeuntil

from accounts.services.login_failures import attempt_begin, attempt_succeeded


class LoginForm(AuthenticationForm):
    """Django's login form, which rejects all passwords for some time after several failures."""

    #: Until when passwords are rejected, or None.
    rejected_until: datetime | None = None

    def clean(self) -> dict[str, Any]:
        if self.errors:  # without a name or a password, nothing is checked: this is no success
            return self.cleaned_data
        name, address = self.cleaned_data["username"], address_of(self.request)
        if wait := attempt_begin(name=name, address=address):
            self.rejected_until = timezone.now() + wait
            raise forms.ValidationError("Too many failed logins.", "throttled")
        data = super().clean()
        attempt_succeeded(name=name, address=address)
        return data


class PasswordForm(PasswordChangeForm):
    """Django's form to change the password, which rejects the old one for some time after several failures.

    Otherwise, whoever uses the session of a user could guess the password and take over the account.
    """

    def clean_old_password(self) -> str:
        name, account = self.user.get_username(), f"account {self.user.pk}"
        if wait := attempt_begin(name=name, address=account):
            time = timeuntil(timezone.now() + wait)
            raise forms.ValidationError(f"Too many failed attempts. Try again in {time}.", "throttled")
        password: str = super().clean_old_password()
        attempt_succeeded(name=name, address=account)
        return password


class PasswordPage(SuccessMessageMixin, PasswordChangeView):  # type: ignore[type-arg]
    form_class = PasswordForm
    success_url = "/"
    success_message = "Password changed. You have been logged out everywhere else."


def address_of(request: HttpRequest | None) -> str:
    """Return the client's address: that of the peer, or behind a proxy, that of the proxy's peer.

    For IPv6, returns the /64 network, because a client can use any address in it.
    """
    if request is None:
        return ""
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "") if settings.BEHIND_TLS else ""
    text = (forwarded.rsplit(",", 1)[-1].strip() or request.META.get("REMOTE_ADDR") or "")[:64]
    try:
        address = IPv6Address(text)
    except ValueError:
        return text
    return str(address.ipv4_mapped or IPv6Network((int(address), 64), strict=False))
