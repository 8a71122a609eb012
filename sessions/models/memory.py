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
    # Tells facts that say the same (`sessions/memory/sameness.py`): of the text as it is, and of the words
    # that were proposed first. One that was rejected, reworded or not, is not proposed again.
    digest = models.BinaryField(max_length=16)
    said = models.BinaryField(max_length=16)
    state = models.CharField(max_length=16, choices=State.choices, default=State.PROPOSED)
    session = models.ForeignKey(
        AgentSession, null=True, on_delete=models.SET_NULL, related_name="shared_facts"
    )
    revision = models.PositiveIntegerField(null=True)
    # How many sessions had it, those that are gone included, and when the last one was seen to.
    seen_in = models.PositiveIntegerField(default=0)
    seen_at = models.DateTimeField(default=timezone.now)
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
            # The offers of a new session.
            models.Index(fields=["project", "state", "-created_at"], name="shared_fact_state"),
            # The review page: what many sessions had comes first.
            models.Index(fields=["project", "state", "-seen_in", "-id"], name="shared_fact_review"),
            # Whether something was said before.
            models.Index(fields=["project", "agent", "said"], name="shared_fact_said"),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.text[:60]}"


class FactSighting(models.Model):
    """A session whose memory had a fact, and what became of it there since."""

    fact = models.ForeignKey(SharedFact, on_delete=models.CASCADE, related_name="sightings", db_index=False)
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="fact_sightings")
    revision = models.PositiveIntegerField()
    # Of the item in the session's memory.
    digest = models.BinaryField(max_length=16)
    # Why it no longer holds there, and who took it out; "" while it stands.
    stale = models.TextField(blank=True)
    left = models.CharField(max_length=100, blank=True)
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["fact", "session"], name="fact_sighting_once")]

    def __str__(self) -> str:
        return f"{self.fact_id} in {self.session_id}"

    @property
    def doubt(self) -> str:
        """What speaks against the fact, "" while it stands in the session's memory."""
        return self.left or (f"stale: {self.stale}" if self.stale else "")


class ProposalWatch(models.Model):
    """A session whose memory somebody wrote to: it is looked at for proposals when it has come to rest."""

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="proposal_watch"
    )
    due_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["due_at"], name="proposal_due")]

    def __str__(self) -> str:
        return f"proposals of {self.session_id} at {self.due_at:%Y-%m-%d %H:%M}"
