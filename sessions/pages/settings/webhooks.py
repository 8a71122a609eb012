"""Webhook subscriptions and their most recent deliveries."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.text import capfirst
from django.views.decorators.http import require_http_methods, require_POST

from sessions.models import Webhook, WebhookDelivery, WebhookEvent, WebhookFormat
from sessions.pages.access import Viewer, actor_of, owner_of
from sessions.pages.settings.common import PlainForm, sent_by_owner, settings_page
from sessions.services.targets import ForbiddenAddress
from sessions.services.webhooks.subscriptions import (
    DeliveryPending,
    TooManyWebhooks,
    WebhookDisabled,
    host_of,
    webhook_create,
    webhook_delete,
    webhook_redeliver,
    webhook_test,
    webhook_update,
)

_SHOWN_DELIVERIES = 30

_EVENTS = (
    (WebhookEvent.STARTED, "compaction.started: a compaction started"),
    (WebhookEvent.FINISHED, "compaction.finished: a compaction finished, failed or was skipped"),
    (WebhookEvent.SPIKE, "tool_output.spike: the tool outputs of a turn are far larger than usual"),
    (WebhookEvent.BUDGET, "budget.reached: spending reached 50%, 80% or 100% of a budget"),
)


class WebhookForm(PlainForm):
    secret_fields = ("url",)

    url = forms.CharField(label="URL", max_length=2_000, help_text="An https:// URL on a public host.")
    format = forms.ChoiceField(label="Format", choices=WebhookFormat.choices, initial=WebhookFormat.JSON)
    events = forms.MultipleChoiceField(
        choices=_EVENTS, initial=WebhookEvent.values, widget=forms.CheckboxSelectMultiple
    )


@require_http_methods(["GET", "HEAD", "POST"])
def project_webhooks(request: HttpRequest, slug: str) -> HttpResponse:
    viewer, data = sent_by_owner(request, slug)
    form = WebhookForm(data)
    if not form.is_valid():
        return _page(request, viewer, {"form": form})
    try:
        webhook = webhook_create(project=viewer.project, actor=actor_of(request), **form.cleaned_data)
    except TooManyWebhooks as error:
        form.add_error(None, f"{capfirst(str(error))}.")
        return _page(request, viewer, {"form": form})
    except ForbiddenAddress as error:
        form.add_error("url", f"{capfirst(str(error))}.")
        return _page(request, viewer, {"form": form})
    return _page(request, viewer, {"form": WebhookForm(), "created": webhook})


@require_POST
def webhook_switch(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """Enable a webhook with `active=1`, or disable it, regardless of what another tab has done."""
    viewer = owner_of(request, slug)
    is_active = request.POST.get("active") == "1"
    try:
        webhook_update(
            webhook=_webhook(viewer, id), changes={"is_active": is_active}, actor=actor_of(request)
        )
    except Webhook.DoesNotExist:
        raise Http404("Webhook not found") from None  # deleted during the request
    messages.success(request, f"Webhook {'enabled' if is_active else 'disabled'}.")
    return redirect("settings_webhooks", slug=slug)


@require_POST
def webhook_test_send(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    viewer = owner_of(request, slug)
    try:
        webhook_test(webhook=_webhook(viewer, id), actor=actor_of(request))
    except WebhookDisabled as error:
        messages.error(request, f"{capfirst(str(error))}.")
    else:
        messages.success(request, "Test event queued. Reload this page to see its result.")
    return redirect("settings_webhooks", slug=slug)


@require_POST
def delivery_redeliver(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    viewer = owner_of(request, slug)
    rows = WebhookDelivery.objects.select_related("webhook__project")
    delivery = get_object_or_404(rows, webhook__project=viewer.project, pk=id)
    try:
        webhook_redeliver(delivery=delivery, actor=actor_of(request))
    except (WebhookDisabled, DeliveryPending) as error:
        messages.error(request, f"{capfirst(str(error))}.")
    else:
        messages.success(request, "Delivery queued again. Reload this page to see its result.")
    return redirect("settings_webhooks", slug=slug)


@require_POST
def webhook_remove(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    viewer = owner_of(request, slug)
    webhook_delete(webhook=_webhook(viewer, id), actor=actor_of(request))
    messages.success(request, "Webhook deleted. Pending deliveries were dropped.")
    return redirect("settings_webhooks", slug=slug)


def _page(request: HttpRequest, viewer: Viewer, context: dict[str, Any]) -> HttpResponse:
    rows = list(Webhook.objects.filter(project=viewer.project).order_by("created_at"))
    deliveries = WebhookDelivery.objects.filter(webhook__in=rows).select_related("webhook")
    newest = deliveries.order_by("-created_at")[:_SHOWN_DELIVERIES]
    context = {
        # A URL may contain a token, so only owners see more than its host.
        "webhooks": [(row, row.url if viewer.is_owner else host_of(row.url)) for row in rows],
        "deliveries": [(row, host_of(row.webhook.url)) for row in newest],
        **context,
    }
    return settings_page(request, viewer, "webhooks.html", context)


def _webhook(viewer: Viewer, id: UUID) -> Webhook:
    return get_object_or_404(Webhook.objects.select_related("project"), project=viewer.project, pk=id)
