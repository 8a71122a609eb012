"""The project's custom redaction patterns, which can be tested before they are saved."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from accounts.models import Project
from accounts.services.projects import ProjectChanged, project_update
from redaction import ExtraPattern, InvalidPatternError, Redaction, extra_rules, redact
from sessions.pages.access import Viewer, actor_of
from sessions.pages.settings.common import PlainForm, sent_by_owner, settings_page
from sessions.selectors.redaction import redaction_key

_MAX_SAMPLE_LENGTH = 20_000

_CHANGED = (
    "Another owner has changed the patterns since you opened this page. They are listed below. Saving again "
    "replaces them."
)


class RedactionForm(PlainForm):
    secret_fields = ("sample",)

    patterns = forms.CharField(
        label="Patterns",
        required=False,
        max_length=12_000,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "placeholder": r"ticket ACME-\d+"}),
        help_text="One per line: a name (a–z, 0–9, -), a space and an RE2 regular expression. If it has a "
        "group, only the first group is redacted.",
    )
    sample = forms.CharField(
        label="Sample text",
        required=False,
        max_length=_MAX_SAMPLE_LENGTH,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="Choose “Test patterns” to see it redacted. It is not stored.",
    )
    # Identifies the patterns that the form was filled with.
    version = forms.CharField(required=False, widget=forms.HiddenInput)

    def clean_patterns(self) -> list[dict[str, str]]:
        lines = [line.strip() for line in self.cleaned_data["patterns"].splitlines() if line.strip()]
        parts = [line.partition(" ") for line in lines]
        patterns = [ExtraPattern(kind=kind, pattern=pattern.strip()) for kind, _, pattern in parts]
        if any(not one.pattern for one in patterns):
            raise forms.ValidationError("Each line needs a name, a space and a regular expression.")
        try:
            extra_rules(patterns)
        except InvalidPatternError as error:
            raise forms.ValidationError(f"{error}.") from None
        return [{"kind": one.kind, "pattern": one.pattern} for one in patterns]


@require_http_methods(["GET", "HEAD", "POST"])
def project_redaction(request: HttpRequest, slug: str) -> HttpResponse:
    viewer, data = sent_by_owner(request, slug)
    form = RedactionForm(
        data, initial={"patterns": _lines(viewer.project), "version": _version(viewer.project)}
    )
    if not form.is_valid():
        return _page(request, viewer, form)
    patterns = form.cleaned_data["patterns"]
    if "test" in request.POST:
        redaction = Redaction(
            key=redaction_key(viewer.project.pk), patterns=tuple(ExtraPattern(**one) for one in patterns)
        )
        redacted, found = redact(form.cleaned_data["sample"], redaction=redaction)
        return _page(request, viewer, form, redacted=redacted, found=found)
    try:
        if form.cleaned_data["version"] not in ("", _version(viewer.project)):
            raise ProjectChanged
        changes = {"redaction_patterns": patterns}
        project_update(project=viewer.project, changes=changes, actor=actor_of(request), only_unchanged=True)
    except ProjectChanged:
        viewer.project.refresh_from_db(fields=["redaction_patterns"])  # perhaps changed during this request
        version = _version(viewer.project)
        form.data = {name: form.data.get(name, "") for name in form.fields} | {"version": version}
        form.add_error(None, _CHANGED)
        return _page(request, viewer, form, is_changed=True)
    messages.success(request, "Patterns saved. They apply to new pushes and imports.")
    return redirect("settings_redaction", slug=slug)


def _lines(project: Project) -> str:
    return "\n".join(f"{one['kind']} {one['pattern']}" for one in project.redaction_patterns)


def _version(project: Project) -> str:
    return sha256(_lines(project).encode()).hexdigest()


def _page(request: HttpRequest, viewer: Viewer, form: RedactionForm, **more: Any) -> HttpResponse:
    context = {"form": form, "patterns": viewer.project.redaction_patterns, **more}
    return settings_page(request, viewer, "redaction.html", context)
