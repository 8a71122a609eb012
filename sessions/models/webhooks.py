"""Webhook subscriptions and their deliveries."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Project
from sessions.models.claimable import Claimable
from sessions.models.compactions import Compaction


class WebhookEvent(models.TextChoices):
    STARTED = "compaction.started", "a compaction starts"
    FINISHED = "compaction.finished", "a compaction ends, with any result"
    SPIKE = "tool_output.spike", "tool outputs of a turn are far larger than usual"
    BUDGET = "budget.reached", "spending reaches a share of a budget"


#: The event that a user sends to test a webhook. It is not a `WebhookEvent`, because webhooks do not
#: subscribe to it, and another choice for the columns would require a migration.
TEST_EVENT = "test"


class WebhookFormat(models.TextChoices):
    JSON = "json", "JSON: the event with its data, signed"
    SLACK = "slack", "Slack: a message with a link"


class Webhook(models.Model):
    """A URL that receives a project's events.

    In the format `slack`, which Slack, Mattermost and Discord (with `/slack` at the end of the URL) accept,
    each event is a short text.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=2_000)
    # Stored in plain text, because it signs each request.
    secret = models.CharField(max_length=100)
    events = ArrayField(models.CharField(max_length=32, choices=WebhookEvent.choices))
    format = models.CharField(max_length=8, choices=WebhookFormat.choices, default=WebhookFormat.JSON)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        # Every compaction looks up the active webhooks of its project.
        indexes = [
            models.Index(fields=["project"], condition=models.Q(is_active=True), name="webhook_active")
        ]

    def __str__(self) -> str:
        return self.url


class WebhookDelivery(Claimable):
    """One event for one webhook, stored in the transaction of the change that it reports.

    `attempts` counts the requests. The lease of an attempt is also the pause before the next one.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        SENT = "sent"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    # NULL if the event is about something else.
    compaction = models.ForeignKey(Compaction, null=True, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=32, choices=WebhookEvent.choices)
    # The bytes that are signed and sent, the same for every attempt.
    body = models.BinaryField()
    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    # HTTP status and error message of the last attempt.
    status = models.PositiveSmallIntegerField(null=True)
    error = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            # The sweep dispatches pending deliveries.
            models.Index(
                models.F("lease_until").asc(nulls_first=True),
                condition=models.Q(state="pending"),
                name="delivery_pending",
            ),
            # The page of a webhook lists its newest deliveries.
            models.Index(fields=["webhook", "-created_at"], name="delivery_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook_id} ({self.state})"
