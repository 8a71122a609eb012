"""Runs of tools that telemetry reports."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from sessions.models.session import AgentSession


class ToolRun(models.Model):
    """A run of a tool by the agent. `call_id` is the ID of the model's tool call."""

    pk = models.CompositePrimaryKey("session_id", "call_id")
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="tool_runs", db_index=False
    )
    call_id = models.CharField(max_length=200)
    name = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(default=timezone.now)
    duration_ms = models.PositiveIntegerField()
    is_error = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.name} {self.call_id} of {self.session_id}"
