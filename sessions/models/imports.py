"""Imported logs, so that an unchanged log is not read again."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from sessions.models.session import AgentSession


class ImportedLog(models.Model):
    """A state of a log that was imported into a session, identified by its hash.

    It is deleted with the session, so a deleted session can be imported again.
    """

    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="imported_logs", db_index=False
    )
    digest = models.BinaryField(max_length=32)
    # Sessions in the log. If fewer are stored, the log is read again.
    sessions = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "digest"], name="imported_log_once")]

    def __str__(self) -> str:
        return f"log {bytes(self.digest).hex()[:12]} of {self.session_id}"
