"""Sums by the quarter of an hour, so that trends need not scan turns."""

from __future__ import annotations

from django.db import models

from accounts.models import Project
from sessions.models.session import AgentSession


class UsageRollup(models.Model):
    """What one session used of one model in one quarter of an hour (UTC).

    Quarters, not days: a viewer's day begins in the viewer's time zone, and zones differ by quarters of an
    hour. Agent, tags and member stand on the session and are joined to it, so that a change of them changes
    the past too. Turns that another session was billed for are left out.

    `hidden_tokens` are those that the edits kept out of prompts whose call reported its usage, summed over
    the calls, at the provider's count, up to the model's window; `saved_microusd` is what they would have
    cost (`services/rollups.py`).
    """

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="usage_rollups", db_index=False
    )
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="usage_rollups", db_index=False
    )
    at = models.DateTimeField()
    model = models.CharField(max_length=200, blank=True)
    turns = models.PositiveIntegerField(default=0)
    unpriced_turns = models.PositiveIntegerField(default=0)
    uncached_tokens = models.PositiveBigIntegerField(default=0)
    cache_read_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cost_microusd = models.PositiveBigIntegerField(default=0)
    hidden_tokens = models.PositiveBigIntegerField(default=0)
    saved_microusd = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "at", "model"], name="rollup_once")]
        # Trends read a span of a project.
        indexes = [models.Index(fields=["project", "at"], name="rollup_span")]

    def __str__(self) -> str:
        return f"{self.session_id} {self.at:%Y-%m-%d %H:%M} {self.model}"


class RollupCursor(models.Model):
    """How many turns of a session its sums contain: the first so many, since turns are appended."""

    session = models.OneToOneField(AgentSession, on_delete=models.CASCADE, primary_key=True)
    turns = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.session_id}: {self.turns} turns"
