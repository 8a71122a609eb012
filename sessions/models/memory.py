"""Working memory: its revisions, the state of automatic updates, and facts shared between sessions."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Project
from sessions.models.fields import PackedJSONField
from sessions.models.session import AgentSession


class MemoryRevision(models.Model):
    """The whole working memory after one change, with the author, time and reason of the change.

    `user` is set if a user made the change in the dashboard.
    """

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
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    reason = models.TextField(blank=True)
    body = PackedJSONField()
    # Origin of each item, and the items that were resolved; NULL if not recorded.
    origins = PackedJSONField(null=True)
    tokens = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "number"], name="memory_revision_number")]

    def __str__(self) -> str:
        return f"memory {self.number} of {self.session_id}"


class MemoryUpdateState(models.Model):
    """The state that automatic memory updates keep between the turns of a session.

    `turn` is the next one to read, `data` the rest. Derived: without the row, updates read
    the session from its first turn.
    """

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="memory_update_state"
    )
    turn = models.PositiveIntegerField(default=0)
    data = PackedJSONField()

    def __str__(self) -> str:
        return f"memory updates of {self.session_id} at turn {self.turn}"


class SharedFact(models.Model):
    """A fact that may be useful in other sessions of a project.

    Facts are proposed from a session's memory, and offered to other sessions after a user has accepted them
    and until they expire. An empty `agent` means all agents.
    """

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
    # Equal for texts with the same meaning (`services/memory/fact_identity.py`): of the current text, and of
    # the text that was first proposed, so that a rejected or reworded fact is not proposed again.
    digest = models.BinaryField(max_length=16)
    proposed_digest = models.BinaryField(max_length=16)
    state = models.CharField(max_length=16, choices=State.choices, default=State.PROPOSED)
    session = models.ForeignKey(
        AgentSession, null=True, on_delete=models.SET_NULL, related_name="shared_facts"
    )
    revision = models.PositiveIntegerField(null=True)
    # How many sessions had the fact, including deleted ones, and when it was last observed.
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
            # Facts offered to a new session.
            models.Index(fields=["project", "state", "-created_at"], name="shared_fact_state"),
            # The review page lists facts that occur in many sessions first.
            models.Index(fields=["project", "state", "-seen_in", "-id"], name="shared_fact_review"),
            # Whether the same fact was proposed before.
            models.Index(fields=["project", "agent", "proposed_digest"], name="shared_fact_proposed"),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.text[:60]}"


class FactObservation(models.Model):
    """A fact in the memory of one session, and what happened to it there."""

    fact = models.ForeignKey(
        SharedFact, on_delete=models.CASCADE, related_name="observations", db_index=False
    )
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="fact_observations")
    revision = models.PositiveIntegerField()
    # Digest of the item in the session's memory.
    digest = models.BinaryField(max_length=16)
    # Why the item is stale there, and who removed it; "" if it is neither.
    stale = models.TextField(blank=True)
    removed = models.CharField(max_length=100, blank=True)
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["fact", "session"], name="fact_observation_once")]

    def __str__(self) -> str:
        return f"{self.fact_id} in {self.session_id}"

    @property
    def doubt(self) -> str:
        """What contradicts the fact in this session; "" if nothing does."""
        return self.removed or (f"stale: {self.stale}" if self.stale else "")


class ProposalScan(models.Model):
    """A session whose memory was written to. It is scanned for proposals when it has become idle."""

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="proposal_scan"
    )
    scan_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["scan_at"], name="proposal_scan_at")]

    def __str__(self) -> str:
        return f"proposal scan of {self.session_id} at {self.scan_at:%Y-%m-%d %H:%M}"
