"""The transcript: turns, messages, and the blobs that hold large contents once. Append-only."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import HashIndex
from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Project
from compaction.breakdown import TokenBreakdown
from sessions.models.session import AgentSession


class Turn(models.Model):
    """One push: usually one model call with the messages that were new in it.

    `prompt_estimate` is our count of the prompt that the call read, in tokens; `prompt_reported` is the
    provider's, where it said so, and is then the sum of the three parts of the usage.
    """

    pk = models.CompositePrimaryKey("session_id", "index")
    # The primary key begins with the session: an index of its own would be a second one on it.
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="turns", db_index=False)
    index = models.PositiveIntegerField()
    at = models.DateTimeField(default=timezone.now)
    model = models.CharField(max_length=200, blank=True)
    first_position = models.PositiveIntegerField()
    message_count = models.PositiveIntegerField()
    preamble_version = models.PositiveSmallIntegerField(default=0)

    idempotency_key = models.CharField(max_length=200, null=True)
    body_hash = models.BinaryField(max_length=32, null=True)
    # What the push was answered, so that a retry is told the same.
    answer = models.BinaryField(null=True)

    prompt_estimate = models.PositiveIntegerField()
    prompt_reported = models.PositiveIntegerField(null=True)
    prompt_served = models.PositiveIntegerField(null=True)
    # Tokens of what was served by component, in the order of `breakdown.COMPONENTS`, without trailing zeros.
    component_tokens = ArrayField(models.PositiveIntegerField(), default=list)

    uncached_tokens = models.PositiveIntegerField(null=True)
    cache_read_tokens = models.PositiveIntegerField(null=True)
    cache_write_tokens = models.PositiveIntegerField(null=True)
    output_tokens = models.PositiveIntegerField(null=True)
    # NULL: the model has no price ("unpriced"), or the call reported no usage.
    cost_microusd = models.PositiveBigIntegerField(null=True)

    response_id = models.CharField(max_length=200, null=True)
    # False where the same response is already billed to another session: a fork copies its history.
    billed = models.BooleanField(default=True)
    # {"trigger", "tokens_before"}: the recording client compacted its own context before this turn.
    client_compaction = models.JSONField(null=True)

    class Meta:
        constraints = [
            # A retried push finds its first try.
            models.UniqueConstraint(
                fields=["session", "idempotency_key"],
                condition=models.Q(idempotency_key__isnull=False),
                name="turn_idempotency_key",
            ),
        ]
        indexes = [
            # Import: was this response billed already? By hash, since the names are long.
            HashIndex(
                fields=["response_id"],
                condition=models.Q(response_id__isnull=False),
                name="turn_response_id",
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.index} of {self.session_id}"

    @property
    def components(self) -> Mapping[str, int]:
        """Tokens by component; those without any are left out."""
        return TokenBreakdown.from_counts(self.component_tokens).tokens


class Blob(models.Model):
    """A large content, compressed, stored once per project.

    `data` is NULL where it lies in the store beside Postgres (see `sessions/storage.py`).
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="blobs", db_index=False)
    sha256 = models.BinaryField(max_length=32)
    size = models.PositiveIntegerField()
    data = models.BinaryField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "sha256"], name="blob_once")]

    def __str__(self) -> str:
        return f"{bytes(self.sha256).hex()[:12]} ({self.size} bytes)"


class Message(models.Model):
    """One provider message. `body` is its JSON, byte for byte, compressed; a large one lies in `blob`.

    Not JSONB, which would reorder keys, rewrite numbers and refuse \\u0000: verbatim means verbatim.
    """

    pk = models.CompositePrimaryKey("session_id", "position")
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
    position = models.PositiveIntegerField()
    turn_index = models.PositiveIntegerField()
    role = models.CharField(max_length=16)
    tokens = models.PositiveIntegerField()
    flags = models.PositiveSmallIntegerField(default=0)
    tool_name = models.CharField(max_length=200, blank=True)
    body = models.BinaryField(null=True)
    blob = models.ForeignKey(
        Blob, null=True, on_delete=models.PROTECT, related_name="messages", db_index=False
    )
    # The message's name in the log that it was imported from.
    source_id = models.CharField(max_length=200, null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(body__isnull=False) ^ models.Q(blob__isnull=False),
                name="message_body_or_blob",
            )
        ]
        indexes = [
            # A deletion asks whether somebody else uses the blob. Few messages have one.
            models.Index(fields=["blob"], condition=models.Q(blob__isnull=False), name="message_blob"),
        ]

    def __str__(self) -> str:
        return f"message {self.position} of {self.session_id}"
