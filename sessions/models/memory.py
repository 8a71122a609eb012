"""Working memory, revision by revision."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from sessions.models.session import AgentSession


class MemoryRevision(models.Model):
    """The whole working memory after one change, with who changed it, when and why."""

    class Author(models.TextChoices):
        MODEL = "model"
        HARNESS = "harness"
        PERSON = "person"

    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="memory_revisions", db_index=False
    )
    number = models.PositiveIntegerField()
    turn_index = models.PositiveIntegerField()
    author = models.CharField(max_length=16, choices=Author.choices)
    reason = models.TextField(blank=True)
    body = models.BinaryField()
    tokens = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "number"], name="memory_revision_number")]

    def __str__(self) -> str:
        return f"memory {self.number} of {self.session_id}"
