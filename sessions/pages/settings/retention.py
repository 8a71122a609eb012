"""Retention: how long sessions are kept. Shows what would be deleted before a change is saved."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize
from django.views.decorators.http import require_http_methods, require_POST

from sessions.pages.access import Viewer, actor_of, owner_of
from sessions.pages.settings.common import PlainForm, sent_by_owner, settings_page
from sessions.services.sessions.retention import NOTICE, retention_dry_run, retention_set


class RetentionForm(PlainForm):
    days = forms.IntegerField(
        label="Delete sessions after this many days without a turn",
        min_value=1,
        max_value=36_500,
        error_messages=dict.fromkeys(
            ("min_value", "max_value"), "Enter a number of days from 1 to 36,500 (100 years)."
        ),
    )
    confirmed = forms.BooleanField(required=False, widget=forms.HiddenInput)


@require_http_methods(["GET", "HEAD", "POST"])
def project_retention(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what a new period would delete. Saves it once the form is sent again with `confirmed`."""
    viewer, data = sent_by_owner(request, slug)
    form = RetentionForm(data, initial={"days": viewer.project.retention_days})
    if not form.is_valid():
        return _page(request, viewer, form)
    days = form.cleaned_data["days"]
    if not form.cleaned_data["confirmed"]:
        dry_run = retention_dry_run(project=viewer.project, days=days)
        return _page(request, viewer, form, dry_run=dry_run, days=days)
    retention_set(project=viewer.project, days=days, actor=actor_of(request))
    messages.success(request, f"Sessions are deleted {days} day{pluralize(days)} after their last turn.")
    return redirect("settings_retention", slug=slug)


@require_POST
def retention_off(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = owner_of(request, slug)
    retention_set(project=viewer.project, days=None, actor=actor_of(request))
    messages.success(request, "Sessions are kept forever.")
    return redirect("settings_retention", slug=slug)


def _page(request: HttpRequest, viewer: Viewer, form: RetentionForm, **more: Any) -> HttpResponse:
    context: dict[str, Any] = {"form": form, "notice_days": NOTICE.days, **more}
    if viewer.project.retention_days is not None:
        context["current"] = retention_dry_run(project=viewer.project, days=viewer.project.retention_days)
    return settings_page(request, viewer, "retention.html", context)
