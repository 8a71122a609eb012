"""What every page of the settings shares: its sections, who may change what, how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers

from redaction import Redaction, redact
from sessions.pages.access import Viewer, viewer_of
from sessions.selectors.summarizers import MODEL_NAME

#: The sections in order: what each is called, and the name of its address.
SECTIONS: Sequence[tuple[str, str]] = (
    ("Project", "settings"),
    ("Members", "settings_members"),
    ("API keys", "settings_keys"),
    ("Policy", "settings_policy"),
    ("Budgets", "settings_budgets"),
    ("Prices", "settings_prices"),
    ("Webhooks", "settings_webhooks"),
    ("Working memory", "settings_memory"),
    ("Redaction", "settings_redaction"),
    ("Retention", "settings_retention"),
    ("Audit trail", "settings_audit"),
)


def owner_of(request: HttpRequest, slug: str) -> Viewer:
    """The viewer, who owns the project. Raises Http404 for strangers, PermissionDenied for other members."""
    viewer = viewer_of(request, slug)
    if not viewer.is_owner:
        raise PermissionDenied("Only owners of the project can change its settings.")
    return viewer


def settings_page(
    request: HttpRequest, viewer: Viewer, template: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """A page of the settings. Never cached: some show a secret once."""
    response = render(
        request, f"settings/{template}", {"viewer": viewer, "sections": SECTIONS, **context}, status=status
    )
    add_never_cache_headers(response)
    return response


def user_of(request: HttpRequest) -> User:
    """Who asks. Every page behind the log-in has a user."""
    user = request.user
    assert isinstance(user, User)
    return user


class ModelField(forms.CharField):
    """A model's name, which may be left out; no key of an API, which is easily pasted here."""

    def __init__(self, **options: Any) -> None:
        no_spaces = RegexValidator(MODEL_NAME, "A model's name has no spaces.")
        super().__init__(required=False, max_length=200, validators=[no_spaces], **options)

    def clean(self, value: Any) -> str:
        name: str = super().clean(value)
        if redact(name, key=Redaction(key=b"of no use here"))[1]:
            raise forms.ValidationError("This is a secret and no model's name. Nothing was stored.")
        return name


class PlainForm(forms.Form):
    """A form whose labels end without a colon."""

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, label_suffix="", **options)
