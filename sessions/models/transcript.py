"""The transcript: turns, messages, and blobs for large contents. Append-only.

See `sessions/models/session.py` for why counts are not `PositiveIntegerField`s.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings
from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import ApiKey, Project
from sessions.models.fields import JSONField
from sessions.models.session import AgentSession
from sessions.store.counts import breakdown_unpack


class TurnSource(models.TextChoices):
    """What stored a turn."""

    PUSH = "push", "a push or reconciliation over the API"
    GATEWAY = "gateway", "the gateway"
    TELEMETRY = "telemetry", "telemetry"
    LOG = "log", "an imported log"


#: The sources of calls for which the client has sent its own prompt to the provider.
REPORTED = frozenset({TurnSource.GATEWAY, TurnSource.TELEMETRY})


class Turn(models.Model):
    """One push: usually one model call with the messages that were new in it.

    `prompt_estimate` is the estimated size of the call's prompt in tokens, without compaction, and
    `prompt_served` that of the prompt as served. `prompt_reported` is the size that the provider reported,
    the sum of the three input parts of the usage.
    """

    pk = models.CompositePrimaryKey("session_id", "index")
    # No separate index: the primary key begins with the session.
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="turns", db_index=False)
    index = models.IntegerField()
    at = models.DateTimeField(default=timezone.now)
    model = models.CharField(max_length=200, blank=True)
    first_position = models.IntegerField()
    message_count = models.IntegerField()
    preamble_version = models.SmallIntegerField(default=0)

    idempotency_key = models.CharField(max_length=200, null=True)
    body_hash = models.BinaryField(max_length=32, null=True)
    # The JSON response to the push. A retry with the same idempotency key returns it again.
    answer = models.BinaryField(null=True)

    prompt_estimate = models.IntegerField()
    prompt_reported = models.IntegerField(null=True)
    prompt_served = models.IntegerField(null=True)
    # Tokens of the served prompt in the order of `breakdown.COMPONENTS`, without trailing zeros, packed by
    # `sessions/store/counts.py`.
    component_tokens = models.BinaryField(default=b"")

    uncached_tokens = models.IntegerField(null=True)
    cache_read_tokens = models.IntegerField(null=True)
    cache_write_tokens = models.IntegerField(null=True)
    output_tokens = models.IntegerField(null=True)
    # The output tokens in the log if `output_tokens` is an estimate: some logs have the count at which the
    # response began to stream.
    output_reported = models.IntegerField(null=True)
    # NULL if the model has no price ("unpriced") or no usage was reported.
    cost_microusd = models.BigIntegerField(null=True)

    # Milliseconds until the first token and until the end of the call, if the client reports them.
    first_token_ms = models.IntegerField(null=True)
    duration_ms = models.IntegerField(null=True)

    # Which source stored the turn. Another source that reports the same call finds it.
    source = models.CharField(max_length=12, choices=TurnSource, default=TurnSource.PUSH)
    response_id = models.CharField(max_length=200, null=True)
    # What identifies the call in telemetry: the provider's request id, or a derived one.
    request_id = models.CharField(max_length=200, null=True)
    # False if the response is billed to another session: a forked session copies its history.
    billed = models.BooleanField(default=True)
    # How the provider counted, and the budget, when the turn was pushed; NULL for imported turns.
    calibration_factor = models.FloatField(null=True)
    calibration_overhead = models.IntegerField(null=True)
    budget = models.IntegerField(null=True)
    # Tokens of the turn's tool outputs if they are a spike, else NULL (see `compaction/sizes/meter.py`).
    output_spike = models.IntegerField(null=True)
    # {"trigger", "tokens_before"} if the recording client compacted its own context before this turn.
    client_compaction = JSONField(null=True)

    class Meta:
        constraints = [
            # A retried push finds its first attempt.
            models.UniqueConstraint(
                fields=["session", "idempotency_key"],
                condition=models.Q(idempotency_key__isnull=False),
                name="turn_idempotency_key",
            ),
        ]
        indexes = [
            # Imports look up whether a response is billed already. Not a hash index, which takes space for
            # every turn when it is rebuilt, even for those without an id.
            models.Index(
                fields=["response_id"],
                condition=models.Q(response_id__isnull=False),
                name="turn_response_id",
            ),
            # Sources that report the same call find its turn.
            models.Index(
                fields=["request_id"],
                condition=models.Q(request_id__isnull=False),
                name="turn_request_id",
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.index} of {self.session_id}"

    @property
    def components(self) -> Mapping[str, int]:
        """Tokens of the served prompt by component, without empty components."""
        return breakdown_unpack(self.component_tokens).tokens


class Blob(models.Model):
    """The content of a large message, compressed and stored once per project.

    `data` is NULL if the content is in object storage (see `sessions/store/blobs.py`).
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="blobs", db_index=False)
    sha256 = models.BinaryField(max_length=32)
    size = models.IntegerField()
    data = models.BinaryField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "sha256"], name="blob_once")]

    def __str__(self) -> str:
        return f"{bytes(self.sha256).hex()[:12]} ({self.size} bytes)"


class Message(models.Model):
    """One provider message. `body` is its exact JSON, compressed; large contents are in `blob`.

    Not JSONB, which would reorder keys, rewrite numbers and reject \\u0000.
    """

    pk = models.CompositePrimaryKey("session_id", "position")
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
    position = models.IntegerField()
    turn_index = models.IntegerField()
    role = models.CharField(max_length=16)
    tokens = models.IntegerField()
    flags = models.SmallIntegerField(default=0)
    tool_name = models.CharField(max_length=200, blank=True)
    body = models.BinaryField(null=True)
    blob = models.ForeignKey(
        Blob, null=True, on_delete=models.PROTECT, related_name="messages", db_index=False
    )
    # The id of the message in the log that it was imported from.
    source_id = models.CharField(max_length=200, null=True)
    # What identifies the message in the client's history (`compaction.identity`); NULL if it is not known.
    content_hash = models.BinaryField(max_length=8, null=True)
    # The client sent the message only once: prompts that end after this position do not contain it. NULL for
    # all other messages.
    omitted_from = models.IntegerField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(body__isnull=False) ^ models.Q(blob__isnull=False),
                name="message_body_or_blob",
            )
        ]
        indexes = [
            # A deletion checks whether other messages use the blob. Few messages have one.
            models.Index(fields=["blob"], condition=models.Q(blob__isnull=False), name="message_blob"),
            # Past prompts look for omitted messages. Most sessions have none.
            models.Index(
                fields=["session", "position"],
                condition=models.Q(omitted_from__isnull=False),
                name="message_omitted",
            ),
        ]

    def __str__(self) -> str:
        return f"message {self.position} of {self.session_id}"


class Pin(models.Model):
    """A pinned message, and who pinned it.

    A bit in `Message.flags` duplicates this, so that compactions can read it together with the message.
    """

    pk = models.CompositePrimaryKey("session_id", "position")
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="pins", db_index=False)
    position = models.IntegerField()
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    api_key = models.ForeignKey(
        ApiKey, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"pin of message {self.position} of {self.session_id}"
