"""Redaction: the project's own patterns, tried on a text before they are saved."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from accounts.models import Project
from accounts.services import project_update
from redaction import ExtraPattern, InvalidPatternError, Redaction, extra_rules, redact
from sessions.pages.access import Viewer, viewer_of
from sessions.pages.settings.frame import PlainForm, owner_of, settings_page, user_of
from sessions.selectors.redaction import redaction_key

_LONGEST_TRIED = 20_000


class RedactionForm(PlainForm):
    patterns = forms.CharField(
        label="Patterns, one a line",
        required=False,
        max_length=12_000,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "placeholder": r"ticket ACME-\d+"}),
        help_text="A kind of a-z, 0-9 and -, a blank, and a pattern in RE2 syntax. Where it has a group, the "
        "first one is the secret.",
    )
    tried = forms.CharField(
        label="Try them on a text",
        required=False,
        max_length=_LONGEST_TRIED,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="It is shown as it would be stored, and is not kept.",
    )

    def clean_patterns(self) -> list[dict[str, str]]:
        lines = [line.strip() for line in self.cleaned_data["patterns"].splitlines() if line.strip()]
        parts = [line.partition(" ") for line in lines]
        found = [ExtraPattern(kind=kind, pattern=pattern.strip()) for kind, _, pattern in parts]
        if any(not one.pattern for one in found):
            raise forms.ValidationError("A line needs a kind, a blank and a pattern.")
        try:
            extra_rules(found)
        except InvalidPatternError as error:
            raise forms.ValidationError(f"{error}.") from None
        return [{"kind": one.kind, "pattern": one.pattern} for one in found]


@require_http_methods(["GET", "HEAD", "POST"])
def project_redaction(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method != "POST":
        viewer = viewer_of(request, slug)
        return _page(request, viewer, RedactionForm(initial={"patterns": _lines(viewer.project)}))
    viewer = owner_of(request, slug)
    form = RedactionForm(request.POST)
    if not form.is_valid():
        return _page(request, viewer, form, status=422)
    patterns = form.cleaned_data["patterns"]
    if "try" in request.POST:
        redaction = Redaction(
            key=redaction_key(viewer.project.pk), patterns=tuple(ExtraPattern(**one) for one in patterns)
        )
        shown, found = redact(form.cleaned_data["tried"], key=redaction)
        return _page(request, viewer, form, shown=shown, found=found)
    project_update(project=viewer.project, changes={"redaction_patterns": patterns}, user=user_of(request))
    messages.success(request, "What is pushed and imported from now on is redacted by these patterns too.")
    return redirect("settings_redaction", slug=slug)


def _lines(project: Project) -> str:
    return "\n".join(f"{one['kind']} {one['pattern']}" for one in project.redaction_patterns)


def _page(
    request: HttpRequest, viewer: Viewer, form: RedactionForm, *, status: int = 200, **more: Any
) -> HttpResponse:
    context = {"form": form, "patterns": viewer.project.redaction_patterns, **more}
    return settings_page(request, viewer, "redaction.html", context, status=status)
