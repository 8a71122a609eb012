"""Who is told of compactions, and each telling."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Project
from sessions.models.compactions import Compaction


class WebhookEvent(models.TextChoices):
    STARTED = "compaction.started", "a compaction begins"
    FINISHED = "compaction.finished", "a compaction has ended, one way or another"
    BUDGET = "budget.reached", "a share of a budget is spent"


class Webhook(models.Model):
    """An address that is told of what happens in a project."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=2_000)
    # Not hashed: both sides need it to sign.
    secret = models.CharField(max_length=100)
    events = ArrayField(models.CharField(max_length=32, choices=WebhookEvent.choices))
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        # Each compaction asks who is to be told.
        indexes = [
            models.Index(fields=["project"], condition=models.Q(is_active=True), name="webhook_active")
        ]

    def __str__(self) -> str:
        return self.url


class WebhookDelivery(models.Model):
    """One telling. The row is the intent, written with what it tells of; a task is only the wake-up."""

    class State(models.TextChoices):
        PENDING = "pending"
        SENT = "sent"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    # NULL where it tells of something else.
    compaction = models.ForeignKey(Compaction, null=True, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=32, choices=WebhookEvent.choices)
    # The bytes that are signed and sent, the same at each try.
    body = models.BinaryField()
    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    # No try before this. A try moves it on before it begins: if its worker dies, that is the next one.
    next_at = models.DateTimeField(default=timezone.now)
    # What the last try was answered.
    status = models.PositiveSmallIntegerField(null=True)
    error = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            # The sweep looks for what is due.
            models.Index(fields=["next_at"], condition=models.Q(state="pending"), name="delivery_due"),
            # A webhook shows its newest deliveries.
            models.Index(fields=["webhook", "-created_at"], name="delivery_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook_id} ({self.state})"
