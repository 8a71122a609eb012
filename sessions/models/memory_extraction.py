"""Extraction of working memory by a model: its progress, and the cost of each run."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from sessions.models.claimable import Claimable
from sessions.models.fields import PackedJSONField
from sessions.models.session import AgentSession


class MemoryExtractionState(Claimable):
    """Progress of memory extraction in a session: `turn` is the next one to read.

    A worker claims the row for the next turns. The lease is also the pause before the next attempt if this
    one fails. Success sets `attempts` to 0 and clears the lease.
    """

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="memory_extraction_state"
    )
    turn = models.PositiveIntegerField(default=0)
    # Why the last attempt failed; "" if it succeeded or is in progress.
    last_error = models.TextField(blank=True)
    read_at = models.DateTimeField(null=True)
    # Items that were removed from the memory, and the last revision checked for them.
    dismissed = PackedJSONField(null=True)
    revision = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"memory extraction of {self.session_id} at turn {self.turn}"


class MemoryExtraction(models.Model):
    """One run of a model over the turns from `first_turn` up to, not including, `end_turn`, with its cost.

    Failed runs are stored too. `cost_microusd` is NULL if the model has no price.
    """

    class State(models.TextChoices):
        DONE = "done"
        FAILED = "failed"  #: will be retried
        GIVEN_UP = "given_up"  #: these turns are skipped
        SUPERSEDED = "superseded"  #: another worker had taken over

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="memory_extractions")
    at = models.DateTimeField(default=timezone.now)
    model = models.CharField(max_length=200)
    first_turn = models.PositiveIntegerField()
    end_turn = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=State.choices)
    reason = models.TextField(blank=True)
    # The revision that the run created, if it changed anything.
    revision = models.PositiveIntegerField(null=True)
    requests = models.PositiveSmallIntegerField()
    uncached_tokens = models.PositiveIntegerField()
    cache_read_tokens = models.PositiveIntegerField()
    cache_write_tokens = models.PositiveIntegerField()
    output_tokens = models.PositiveIntegerField()
    cost_microusd = models.PositiveBigIntegerField(null=True)

    class Meta:
        # Trends compare the cost of extraction in a period with what compaction saved.
        indexes = [models.Index(fields=["at"], name="memory_extraction_at")]

    def __str__(self) -> str:
        return f"turns {self.first_turn} to {self.end_turn} of {self.session_id} ({self.state})"
