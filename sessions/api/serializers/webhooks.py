"""Webhooks."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import PlainText, Strict
from sessions.models import TEST_EVENT, WebhookDelivery, WebhookEvent, WebhookFormat

_FORMAT = (
    "Format of the requests: `json`, or `slack` for a short message that Slack and compatible chats accept."
)


class WebhookCreate(Strict):
    url = PlainText(max_length=2_000, help_text="HTTPS URL with a public address.")
    events = serializers.MultipleChoiceField(
        choices=WebhookEvent.choices,
        allow_empty=False,
        required=False,
        help_text="Events to send. Defaults to all.",
    )
    format = serializers.ChoiceField(
        choices=WebhookFormat.choices, required=False, help_text=f"{_FORMAT} Defaults to `json`."
    )


class WebhookChange(Strict):
    url = PlainText(max_length=2_000, required=False, help_text="HTTPS URL with a public address.")
    events = serializers.MultipleChoiceField(
        choices=WebhookEvent.choices, allow_empty=False, required=False, help_text="Events to send."
    )
    format = serializers.ChoiceField(choices=WebhookFormat.choices, required=False, help_text=_FORMAT)
    active = serializers.BooleanField(required=False, help_text="Whether events are sent.")


class Webhook(serializers.Serializer):
    id = serializers.UUIDField(help_text="The webhook's id.")
    url = serializers.CharField(help_text="URL that receives the events.")
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=WebhookEvent.choices), help_text="Events to send."
    )
    format = serializers.ChoiceField(choices=WebhookFormat.choices, help_text=_FORMAT)
    active = serializers.BooleanField(help_text="Whether events are sent.")
    created_at = serializers.DateTimeField(help_text="When the webhook was created.")


class WebhookCreated(Webhook):
    secret = serializers.CharField(help_text="Signing secret. Not shown again.")


class Delivery(serializers.Serializer):
    id = serializers.UUIDField(help_text="The delivery's id, also sent with each attempt.")
    event = serializers.ChoiceField(
        choices=[*WebhookEvent.choices, (TEST_EVENT, "a user tests the webhook")], help_text="The event."
    )
    state = serializers.ChoiceField(choices=WebhookDelivery.State.choices, help_text="State of the delivery.")
    attempts = serializers.IntegerField(help_text="Number of attempts so far.")
    status = serializers.IntegerField(
        allow_null=True, help_text="HTTP status of the last attempt, if there was a response."
    )
    error = serializers.CharField(allow_blank=True, help_text="Error of the last attempt.")
    created_at = serializers.DateTimeField(help_text="When the event occurred.")


class WebhookDetail(Webhook):
    deliveries = Delivery(many=True, help_text="The 20 most recent deliveries.")


class WebhookList(serializers.Serializer):
    data = Webhook(many=True, help_text="The webhooks.")
