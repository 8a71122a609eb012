"""Webhooks."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import PlainText, Strict
from sessions.models import WebhookDelivery, WebhookEvent


class WebhookCreate(Strict):
    url = PlainText(max_length=2_000, help_text="https, at a public address")
    events = serializers.MultipleChoiceField(
        choices=WebhookEvent.choices, allow_empty=False, required=False, help_text="else all"
    )


class WebhookChange(Strict):
    url = PlainText(max_length=2_000, required=False)
    events = serializers.MultipleChoiceField(choices=WebhookEvent.choices, allow_empty=False, required=False)
    active = serializers.BooleanField(required=False)


class Webhook(serializers.Serializer):
    id = serializers.UUIDField()
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.ChoiceField(choices=WebhookEvent.choices))
    active = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class WebhookCreated(Webhook):
    secret = serializers.CharField(help_text="signs each request; shown this once")


class Delivery(serializers.Serializer):
    id = serializers.UUIDField()
    event = serializers.ChoiceField(choices=WebhookEvent.choices)
    state = serializers.ChoiceField(choices=WebhookDelivery.State.choices)
    attempts = serializers.IntegerField()
    status = serializers.IntegerField(allow_null=True, help_text="what the last try was answered")
    error = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class WebhookDetail(Webhook):
    deliveries = Delivery(many=True, help_text="the newest 20")


class WebhookList(serializers.Serializer):
    data = Webhook(many=True)
