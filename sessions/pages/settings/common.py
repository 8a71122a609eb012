"""Shared by the settings pages: their sections, rendering and form classes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django import forms
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse, QueryDict

from redaction import Redaction, redact
from sessions.pages.access import Viewer, owner_of, page, viewer_of
from sessions.selectors.summarizers import MODEL_NAME

#: Label and URL name of each section, in the order of the navigation.
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
    ("Audit log", "settings_audit"),
)


def sent_by_owner(request: HttpRequest, slug: str) -> tuple[Viewer, QueryDict | None]:
    """Return the viewer and the submitted form, or None if there is none. Only owners may submit one."""
    if request.method == "POST":
        return owner_of(request, slug), request.POST
    return viewer_of(request, slug), None


def settings_page(
    request: HttpRequest, viewer: Viewer, template: str, context: dict[str, Any]
) -> HttpResponse:
    """Render a settings page. Never cached, because some pages show a secret once."""
    return page(request, f"settings/{template}", {"viewer": viewer, "sections": SECTIONS, **context})


class ModelField(forms.CharField):
    """An optional model name. Rejects API keys, which are easily pasted into this field."""

    def __init__(self, **options: Any) -> None:
        no_spaces = RegexValidator(MODEL_NAME, "Model names cannot contain spaces.")
        super().__init__(required=False, max_length=200, validators=[no_spaces], **options)

    def clean(self, value: Any) -> str:
        name: str = super().clean(value)
        if contains_secret(name):
            raise forms.ValidationError(
                "This looks like a secret, not a model name. It was not saved; enter a model name."
            )
        return name


class PlainForm(forms.Form):
    """A form whose labels end without a colon, and which rejects texts that look like secrets."""

    #: Fields that may contain a secret. Neither the browser nor `drafts.js` keeps their text.
    secret_fields: Collection[str] = ()

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, label_suffix="", **options)
        for name in self.secret_fields:
            self.fields[name].widget.attrs["autocomplete"] = "off"

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # the hook for checks of cleaned data
        for name, value in list(self.cleaned_data.items()):
            if name not in self.secret_fields and isinstance(value, str) and contains_secret(value):
                self.add_error(name, "This looks like a secret. It was not saved.")


def contains_secret(text: str) -> bool:
    # Only whether anything would be redacted matters here, so the key is arbitrary.
    return bool(redact(text, redaction=Redaction(key=b"unused"))[1])
