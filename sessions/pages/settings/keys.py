"""API keys: made here, shown once, revoked here. Members make their own, owners see to all."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from accounts.models import ApiKey, Scope
from accounts.services import api_key_create, api_key_revoke
from sessions.pages.access import Viewer, viewer_of
from sessions.pages.settings.frame import PlainForm, settings_page, user_of

#: Revoked and expired keys that are shown, newest first.
_SHOWN_DEAD = 20

_SCOPES = (
    (Scope.PUSH, "push: write turns"),
    (Scope.READ, "read: prompts, sessions, usage"),
    (Scope.ADMIN, "admin: delete and configure"),
)


class KeyForm(PlainForm):
    name = forms.CharField(max_length=200, help_text="What uses it, as “CI agents”.")
    scopes = forms.MultipleChoiceField(
        choices=_SCOPES, initial=[Scope.PUSH, Scope.READ], widget=forms.CheckboxSelectMultiple
    )
    expires = forms.DateField(
        required=False,
        label="Last day",
        help_text="In UTC; empty: until it is revoked.",
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    rate_limit = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=1_000_000,
        label="Requests a minute",
        help_text="Empty: the server's default.",
    )

    def clean_expires(self) -> datetime | None:
        day: date | None = self.cleaned_data["expires"]
        if day is None:
            return None
        if day < timezone.now().date() or day.year > 2999:
            raise forms.ValidationError("The last day must not have passed.")
        return datetime.combine(day + timedelta(days=1), time(), tzinfo=UTC)


@require_http_methods(["GET", "HEAD", "POST"])
def project_keys(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request, slug)
    if request.method != "POST":
        return _page(request, viewer, {"form": KeyForm()})
    form = KeyForm(request.POST)
    if not viewer.may_write or (Scope.ADMIN in request.POST.getlist("scopes") and not viewer.is_owner):
        raise PermissionDenied("Members make keys to push and read, owners any; viewers none.")
    if not form.is_valid():
        return _page(request, viewer, {"form": form}, status=422)
    data = form.cleaned_data
    key, text = api_key_create(
        project=viewer.project,
        name=data["name"],
        scopes=data["scopes"],
        expires_at=data["expires"],
        rate_limit=data["rate_limit"],
        created_by=user_of(request),
    )
    # Shown by this answer itself: a redirect would have to keep it somewhere.
    return _page(request, viewer, {"form": KeyForm(), "made": key, "text": text})


@require_POST
def key_revoke(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    viewer = viewer_of(request, slug)
    key = ApiKey.objects.select_related("project").filter(project=viewer.project, pk=id).first()
    if key is None:
        raise Http404("no such key")
    if not viewer.is_owner and (key.created_by_id != request.user.pk or not viewer.may_write):
        raise PermissionDenied("Only owners can revoke keys that others made.")
    api_key_revoke(key=key, user=user_of(request))
    messages.success(request, f"{key.prefix}… is refused from now on.")
    return redirect("settings_keys", slug=slug)


def _page(
    request: HttpRequest, viewer: Viewer, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    now = timezone.now()
    keys = list(
        ApiKey.objects.filter(project=viewer.project).select_related("created_by").order_by("-created_at")
    )
    dead = [key for key in keys if key.revoked_at or (key.expires_at and key.expires_at <= now)]
    gone = {key.pk for key in dead}
    context = {"live": [key for key in keys if key.pk not in gone], "dead": dead[:_SHOWN_DEAD], **context}
    return settings_page(request, viewer, "keys.html", context, status=status)
