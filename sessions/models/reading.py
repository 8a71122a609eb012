"""What a model has read of a session for its working memory, and what that cost."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from sessions.models.session import AgentSession


class MemoryReader(models.Model):
    """How far a model has read a session: `turn` is the next one to read.

    A worker claims the next turns by counting `attempts` up and moving `free_at` on. Until then nobody else
    asks the model: it is the lease, and where the worker does not get through, the pause before the next try.
    Reading through sets `attempts` to 0 and takes `free_at` away.
    """

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="memory_reader"
    )
    turn = models.PositiveIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    free_at = models.DateTimeField(null=True)
    # Why the last try did not get through; "" where it did, or is under way.
    told = models.TextField(blank=True)
    read_at = models.DateTimeField(null=True)
    # Items that somebody took out, as compressed JSON, and the last revision that was looked at for them.
    dismissed = models.BinaryField(null=True)
    revision = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"reader of {self.session_id} at turn {self.turn}"


class MemoryReading(models.Model):
    """One time that a model was asked about turns, from `first_turn` up to but without `end_turn`, and what
    it took, also where nothing came of it. `cost_microusd` is NULL where the model has no price."""

    class State(models.TextChoices):
        DONE = "done"
        FAILED = "failed"  #: it is tried again
        GIVEN_UP = "given_up"  #: these turns are not read
        SUPERSEDED = "superseded"  #: another worker had taken over

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="memory_readings")
    at = models.DateTimeField(default=timezone.now)
    model = models.CharField(max_length=200)
    first_turn = models.PositiveIntegerField()
    end_turn = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=State.choices)
    reason = models.TextField(blank=True)
    # The revision that it made, where anything changed.
    revision = models.PositiveIntegerField(null=True)
    requests = models.PositiveSmallIntegerField()
    uncached_tokens = models.PositiveIntegerField()
    cache_read_tokens = models.PositiveIntegerField()
    cache_write_tokens = models.PositiveIntegerField()
    output_tokens = models.PositiveIntegerField()
    cost_microusd = models.PositiveBigIntegerField(null=True)

    class Meta:
        # Trends set what the readings of a span cost against what compaction saved.
        indexes = [models.Index(fields=["at"], name="memory_reading_at")]

    def __str__(self) -> str:
        return f"turns {self.first_turn} to {self.end_turn} of {self.session_id} ({self.state})"
