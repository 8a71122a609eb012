"""Webhooks: who is told, and how the telling went."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from sessions.models import Webhook, WebhookDelivery, WebhookEvent
from sessions.pages.access import Viewer, viewer_of
from sessions.pages.settings.frame import PlainForm, owner_of, settings_page, user_of
from sessions.services.webhooks.http import ForbiddenAddress
from sessions.services.webhooks.webhooks import webhook_create, webhook_delete, webhook_update

_SHOWN_DELIVERIES = 30


class WebhookForm(PlainForm):
    url = forms.CharField(
        label="Address", max_length=2_000, help_text="Begins with https:// and leads to a public host."
    )
    events = forms.MultipleChoiceField(
        choices=WebhookEvent.choices, initial=WebhookEvent.values, widget=forms.CheckboxSelectMultiple
    )


@require_http_methods(["GET", "HEAD", "POST"])
def project_webhooks(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method != "POST":
        return _page(request, viewer_of(request, slug), {"form": WebhookForm()})
    viewer = owner_of(request, slug)
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return _page(request, viewer, {"form": form}, status=422)
    try:
        webhook = webhook_create(project=viewer.project, user=user_of(request), **form.cleaned_data)
    except ForbiddenAddress as error:
        form.add_error("url", f"{error}.")
        return _page(request, viewer, {"form": form}, status=422)
    return _page(request, viewer, {"form": WebhookForm(), "made": webhook})


@require_POST
def webhook_switch(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """Switches it off, or on again."""
    viewer = owner_of(request, slug)
    webhook = _webhook(viewer, id)
    webhook_update(webhook=webhook, changes={"is_active": not webhook.is_active}, user=user_of(request))
    messages.success(request, f"The webhook is {'on' if webhook.is_active else 'off'}.")
    return redirect("settings_webhooks", slug=slug)


@require_POST
def webhook_remove(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    viewer = owner_of(request, slug)
    webhook_delete(webhook=_webhook(viewer, id), user=user_of(request))
    messages.success(request, "The webhook is deleted; what it was not told yet is dropped.")
    return redirect("settings_webhooks", slug=slug)


def _page(
    request: HttpRequest, viewer: Viewer, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    rows = list(Webhook.objects.filter(project=viewer.project).order_by("created_at"))
    told = WebhookDelivery.objects.filter(webhook__in=rows).select_related("webhook")
    newest = told.order_by("-created_at")[:_SHOWN_DELIVERIES]
    context = {
        # An address may carry a token: only owners see more of it than its host.
        "webhooks": [(row, row.url if viewer.is_owner else _host(row.url)) for row in rows],
        "deliveries": [(row, _host(row.webhook.url)) for row in newest],
        **context,
    }
    return settings_page(request, viewer, "webhooks.html", context, status=status)


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _webhook(viewer: Viewer, id: UUID) -> Webhook:
    row = Webhook.objects.select_related("project").filter(project=viewer.project, pk=id).first()
    if row is None:
        raise Http404("no such webhook")
    return row
