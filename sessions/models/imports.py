"""Which logs a session has taken in, so that an unchanged one need not be read again."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from sessions.models.session import AgentSession


class ImportedLog(models.Model):
    """One state of a log that a session has taken in, named by the hash of its bytes.

    It goes with its session, so a session that was deleted can be imported again.
    """

    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="imported_logs", db_index=False
    )
    digest = models.BinaryField(max_length=32)
    # How many sessions the log tells of: with fewer of them stored, it is read again.
    sessions = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "digest"], name="imported_log_once")]

    def __str__(self) -> str:
        return f"log {bytes(self.digest).hex()[:12]} of {self.session_id}"
