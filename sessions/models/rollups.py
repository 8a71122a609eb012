"""Sums by the hour, so that trends need not scan turns."""

from __future__ import annotations

from django.db import models

from accounts.models import Project


class UsageRollup(models.Model):
    """Usage of one project on one UTC hour, by agent and model.

    Hours, not days: a viewer's day begins in the viewer's time zone. Nothing fills the table yet: `usage/`
    sums turns, and trends over long spans are to be read from here.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="usage_rollups")
    hour = models.DateTimeField()
    agent = models.CharField(max_length=100, blank=True)
    model = models.CharField(max_length=200, blank=True)
    turns = models.PositiveIntegerField(default=0)
    uncached_tokens = models.PositiveBigIntegerField(default=0)
    cache_read_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cost_microusd = models.PositiveBigIntegerField(default=0)
    unpriced_turns = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "hour", "agent", "model"], name="rollup_once")
        ]

    def __str__(self) -> str:
        return f"{self.project_id} {self.hour:%Y-%m-%d %H:00} {self.agent} {self.model}"
