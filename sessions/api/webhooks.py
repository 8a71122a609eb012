"""`webhooks/`: webhooks of the project and their deliveries."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpResponse

from accounts.models import Scope
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import Conflict, InvalidField, about, sentence
from sessions.api.lookup import row_or_404
from sessions.api.schema import operation
from sessions.api.serializers import webhooks as serializers
from sessions.models import Webhook, WebhookDelivery, WebhookEvent, WebhookFormat
from sessions.services.targets import ForbiddenAddress
from sessions.services.webhooks.subscriptions import (
    DeliveryPending,
    TooManyWebhooks,
    WebhookDisabled,
    webhook_create,
    webhook_delete,
    webhook_redeliver,
    webhook_test,
    webhook_update,
)

_MAX_DELIVERIES = 20


class Webhooks(Endpoint):
    scopes: ClassVar = {"GET": Scope.ADMIN, "POST": Scope.ADMIN}

    @operation("webhooks_list", "List webhooks", serializers.WebhookList)
    def get(self, call: ApiCall) -> HttpResponse:
        """Returns the project's webhooks, oldest first, without their secrets or deliveries."""
        rows = Webhook.objects.filter(project=call.principal.project_id).order_by("created_at")
        return json_response({"data": [_webhook_json(row) for row in rows]})

    @operation(
        "webhooks_create",
        "Create a webhook",
        request=serializers.WebhookCreate,
        responses={201: serializers.WebhookCreated},
        errors=(409,),
    )
    def post(self, call: ApiCall) -> HttpResponse:
        """Sends a `POST` request to `url` for each event. The response contains the signing secret, which is
        not shown again. Each delivery has the header `Contextapp-Signature: t=…,v1=…`, where `v1` is the
        HMAC-SHA256 of `t`, a dot and the body."""
        data = call.validated(serializers.WebhookCreate)
        events = sorted(data.get("events") or WebhookEvent.values)
        try:
            webhook = webhook_create(
                project=call.project,
                url=data["url"],
                events=events,
                format=data.get("format", WebhookFormat.JSON),
                actor=call.actor,
            )
        except ForbiddenAddress as error:
            raise InvalidField("url", about("url", error)) from None
        except TooManyWebhooks as error:
            raise Conflict("too_many_webhooks", sentence(error)) from None
        return json_response(_webhook_json(webhook) | {"secret": webhook.secret}, status=201)


class WebhookView(Endpoint):
    scopes: ClassVar = {"GET": Scope.ADMIN, "PATCH": Scope.ADMIN, "DELETE": Scope.ADMIN}

    @operation("webhooks_get", "Retrieve a webhook", serializers.WebhookDetail)
    def get(self, call: ApiCall, webhook_id: str) -> HttpResponse:
        """Returns the webhook with its 20 most recent deliveries."""
        return json_response(_detail_json(_webhook_or_404(call, webhook_id)))

    @operation(
        "webhooks_change",
        "Update a webhook",
        serializers.WebhookDetail,
        request=serializers.WebhookChange,
    )
    def patch(self, call: ApiCall, webhook_id: str) -> HttpResponse:
        """Changes only the given fields. Set `active` to false to stop deliveries; events
        that occur while it is false are not sent later."""
        webhook = _webhook_or_404(call, webhook_id)
        data = call.validated(serializers.WebhookChange)
        if "active" in data:
            data["is_active"] = data.pop("active")
        if "events" in data:
            data["events"] = sorted(data["events"])
        try:
            webhook_update(webhook=webhook, changes=data, actor=call.actor)
        except ForbiddenAddress as error:
            raise InvalidField("url", about("url", error)) from None
        return json_response(_detail_json(webhook))

    @operation("webhooks_delete", "Delete a webhook", responses={204: None})
    def delete(self, call: ApiCall, webhook_id: str) -> HttpResponse:
        """Deletes the webhook and its pending deliveries."""
        webhook_delete(webhook=_webhook_or_404(call, webhook_id), actor=call.actor)
        return HttpResponse(status=204)


class WebhookTest(Endpoint):
    scopes: ClassVar = {"POST": Scope.ADMIN}

    @operation("webhooks_test", "Send a test event", responses={202: serializers.Delivery}, errors=(409,))
    def post(self, call: ApiCall, webhook_id: str) -> HttpResponse:
        """Sends the event `test` to the webhook, regardless of its `events`. A worker sends it like any other
        delivery; retrieve the webhook to see the result."""
        try:
            delivery = webhook_test(webhook=_webhook_or_404(call, webhook_id), actor=call.actor)
        except WebhookDisabled as error:
            raise Conflict("webhook_disabled", sentence(error)) from None
        return json_response(_delivery_json(delivery), status=202)


class WebhookRedelivery(Endpoint):
    scopes: ClassVar = {"POST": Scope.ADMIN}

    @operation(
        "webhooks_redeliver", "Redeliver an event", responses={202: serializers.Delivery}, errors=(409,)
    )
    def post(self, call: ApiCall, webhook_id: str, delivery_id: str) -> HttpResponse:
        """Sends a delivery again that was sent or has failed, with the same id and body. It is pending again;
        retrieve the webhook to see the result."""
        rows = _webhook_or_404(call, webhook_id).deliveries.select_related("webhook__project")
        delivery = row_or_404(rows, delivery_id, kind="delivery")
        try:
            webhook_redeliver(delivery=delivery, actor=call.actor)
        except WebhookDisabled as error:
            raise Conflict("webhook_disabled", sentence(error)) from None
        except DeliveryPending as error:
            raise Conflict("delivery_pending", sentence(error)) from None
        return json_response(_delivery_json(delivery), status=202)


def _webhook_or_404(call: ApiCall, name: str) -> Webhook:
    rows = Webhook.objects.select_related("project").filter(project=call.principal.project_id)
    return row_or_404(rows, name, kind="webhook")


def _webhook_json(row: Webhook) -> dict[str, Any]:
    return {
        "id": row.pk,
        "url": row.url,
        "events": row.events,
        "format": row.format,
        "active": row.is_active,
        "created_at": row.created_at,
    }


def _detail_json(row: Webhook) -> dict[str, Any]:
    return _webhook_json(row) | {
        "deliveries": [
            _delivery_json(delivery) for delivery in row.deliveries.order_by("-created_at")[:_MAX_DELIVERIES]
        ]
    }


def _delivery_json(row: WebhookDelivery) -> dict[str, Any]:
    return {
        "id": row.pk,
        "event": row.event,
        "state": row.state,
        "attempts": row.attempts,
        "status": row.status,
        "error": row.error,
        "created_at": row.created_at,
    }
