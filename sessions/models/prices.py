"""Prices that a project has agreed on, where they differ from the public table."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from accounts.models import Project


class PriceOverride(models.Model):
    """What a project pays for a model from one day on, in micro-dollars a million tokens. Days are UTC days.

    The newest one that has begun, and has not ended, holds. `model` is compared in lower case.
    """

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="price_overrides", db_index=False
    )
    model = models.CharField(max_length=200)
    first = models.DateField()
    # The last day, included; NULL: until further notice.
    last = models.DateField(null=True)
    uncached = models.PositiveBigIntegerField()
    cache_read = models.PositiveBigIntegerField()
    cache_write = models.PositiveBigIntegerField()
    output = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "model", "first"], name="price_override_once")
        ]

    def __str__(self) -> str:
        return f"{self.model} from {self.first}"
