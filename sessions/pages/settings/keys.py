"""API keys. Members create and revoke their own keys; owners manage all of them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from accounts.models import ApiKey, Scope
from accounts.services.api_keys import api_key_create, api_key_revoke
from sessions.pages.access import Viewer, actor_of, viewer_of
from sessions.pages.settings.common import PlainForm, settings_page

#: The number of revoked and expired keys on the page, newest first.
_SHOWN_INACTIVE = 20

_SCOPES = (
    (Scope.PUSH, "push: write turns"),
    (Scope.READ, "read: prompts, sessions, usage"),
    (Scope.ADMIN, "admin: delete and configure"),
)


class KeyForm(PlainForm):
    name = forms.CharField(max_length=200, help_text="Who or what uses the key, for example, “CI agents”.")
    scopes = forms.MultipleChoiceField(
        choices=_SCOPES, initial=[Scope.PUSH, Scope.READ], widget=forms.CheckboxSelectMultiple
    )
    expires = forms.DateField(
        required=False,
        label="Expires after",
        help_text="Last valid day (UTC). Leave blank for a key that does not expire.",
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    rate_limit = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=1_000_000,
        label="Requests per minute",
        help_text="Leave blank to use the server's default.",
        error_messages={"min_value": "Enter at least 1 request per minute."},
    )

    def clean_expires(self) -> datetime | None:
        day: date | None = self.cleaned_data["expires"]
        if day is None:
            return None
        if day < timezone.now().date():
            raise forms.ValidationError("Choose today or a later day.")
        if day.year > 2999:
            raise forms.ValidationError("Choose an earlier day, or leave the field blank.")
        return datetime.combine(day + timedelta(days=1), time(), tzinfo=UTC)


@require_http_methods(["GET", "HEAD", "POST"])
def project_keys(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request, slug)
    if request.method != "POST":
        return _page(request, viewer, {"form": KeyForm()})
    if not viewer.may_write:
        raise PermissionDenied("Only members with write access can create API keys.")
    if Scope.ADMIN in request.POST.getlist("scopes") and not viewer.is_owner:
        raise PermissionDenied("Only project owners can create keys with the admin scope.")
    form = KeyForm(request.POST)
    if not form.is_valid():
        return _page(request, viewer, {"form": form})
    data = form.cleaned_data
    key, secret = api_key_create(
        project=viewer.project,
        name=data["name"],
        scopes=data["scopes"],
        expires_at=data["expires"],
        rate_limit=data["rate_limit"],
        actor=actor_of(request),
    )
    # Rendered directly: a redirect would have to store the secret somewhere.
    return _page(request, viewer, {"form": KeyForm(), "created": key, "secret": secret})


@require_POST
def key_revoke(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    viewer = viewer_of(request, slug)
    key = get_object_or_404(ApiKey.objects.select_related("project"), project=viewer.project, pk=id)
    if not viewer.is_owner and (key.created_by_id != request.user.pk or not viewer.may_write):
        raise PermissionDenied("Only project owners can revoke keys created by other members.")
    api_key_revoke(key=key, actor=actor_of(request))
    messages.success(request, f"API key “{key.name}” revoked.")
    return redirect("settings_keys", slug=slug)


def _page(request: HttpRequest, viewer: Viewer, context: dict[str, Any]) -> HttpResponse:
    now = timezone.now()
    keys = list(
        ApiKey.objects.filter(project=viewer.project).select_related("created_by").order_by("-created_at")
    )
    inactive = [key for key in keys if key.revoked_at or (key.expires_at and key.expires_at <= now)]
    inactive_ids = {key.pk for key in inactive}
    context = {
        "active": [key for key in keys if key.pk not in inactive_ids],
        "inactive": inactive[:_SHOWN_INACTIVE],
        **context,
    }
    return settings_page(request, viewer, "keys.html", context)
