"""Working memory, revision by revision; what upkeep remembers; what a project carries between sessions."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Project
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
    # Where each item came from, and what was settled, as compressed JSON; NULL: it was not noted then.
    origins = models.BinaryField(null=True)
    tokens = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "number"], name="memory_revision_number")]

    def __str__(self) -> str:
        return f"memory {self.number} of {self.session_id}"


class MemoryWatch(models.Model):
    """What upkeep remembers of a session between turns: `turn` is the next one to read, `data` the rest as
    compressed JSON. Derived: without it upkeep reads the session from its beginning."""

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="memory_watch"
    )
    turn = models.PositiveIntegerField(default=0)
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"watch of {self.session_id} at turn {self.turn}"


class SharedFact(models.Model):
    """Something worth knowing in other sessions of a project: proposed from one session's memory, carried
    only when a person accepted it, and only while it has not expired. `agent` is empty for all agents."""

    class State(models.TextChoices):
        PROPOSED = "proposed"
        ACCEPTED = "accepted"
        REJECTED = "rejected"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="shared_facts", db_index=False
    )
    agent = models.CharField(max_length=100, blank=True)
    field = models.CharField(max_length=40)
    text = models.TextField()
    # Tells equal facts whatever their case and blanks: one that was rejected is not proposed again.
    digest = models.BinaryField(max_length=16)
    state = models.CharField(max_length=16, choices=State.choices, default=State.PROPOSED)
    session = models.ForeignKey(
        AgentSession, null=True, on_delete=models.SET_NULL, related_name="shared_facts"
    )
    revision = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    decided_at = models.DateTimeField(null=True)
    confirmed_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "agent", "digest"], name="shared_fact_once")
        ]
        indexes = [
            # The review page and the offers of a new session.
            models.Index(fields=["project", "state", "-created_at"], name="shared_fact_state"),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.text[:60]}"
