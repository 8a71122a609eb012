"""Compactions: batches of edits that change the prompt, and their recaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from sessions.models.claimable import Claimable
from sessions.models.fields import JSONField, PackedJSONField
from sessions.models.session import AgentSession

#: The parts of a compaction's record that no SQL statement reads.
_DETAILS = frozenset(
    (
        *("state", "trigger", "policy_version", "budget", "target", "overhead", "fits", "duration_ms"),
        *("steps", "components", "dropped", "collapsed", "exceptions", "break_even_turns"),
        *("tokens_before", "tokens_after", "tokens_saved", "head_tokens", "middle_tokens", "tail_tokens"),
        *("head_verbatim", "tail_verbatim", "tail_bound"),
    )
)


class Compaction(Claimable):
    """One compaction, from its trigger to its result. The row is authoritative; a Celery task only starts it.

    A worker that runs it renews its lease until it has finished.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        DONE = "done"
        SKIPPED = "skipped"
        FAILED = "failed"
        REVERTED = "reverted"

    OPEN = (State.PENDING, State.RUNNING)
    #: Compactions that changed the prompts that were served.
    APPLIED = (State.DONE, State.REVERTED)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="compactions", db_index=False
    )
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    trigger = models.CharField(max_length=32)
    reason = models.TextField(blank=True)
    instructions = models.TextField(blank=True)
    # The last turn before the compaction.
    turn_index = models.PositiveIntegerField()
    # The first turn whose prompt contains the edits: `turn_index`, or the next one if the prompt of the
    # former was served before. NULL until the compaction is applied.
    first_turn = models.PositiveIntegerField(null=True)
    # Set by a revert: the first turn whose prompt no longer contains the edits.
    reverted_turn = models.PositiveIntegerField(null=True)
    # The number of messages at planning time; later ones are appended unchanged.
    snapshot_position = models.PositiveIntegerField()
    policy = PackedJSONField(default=dict)
    tokens_before = models.PositiveIntegerField(null=True)
    tokens_after = models.PositiveIntegerField(null=True)
    # The two parts of `record`. Postgres does not compress JSONB below 2 KB, so `details` would take four
    # times the space.
    facts = JSONField(default=dict)
    details = PackedJSONField(default=dict)
    cost_microusd = models.PositiveBigIntegerField(null=True)
    # When it was last dispatched to the workers. The task may have been lost.
    dispatched_at = models.DateTimeField(null=True)
    # Set if the recap is deterministic although a model should have written it. A worker tries once more to
    # replace it.
    awaits_upgrade = models.BooleanField(default=False)
    # The compaction whose deterministic recap this one replaces.
    upgrades = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="upgraded_by")
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "number"], name="compaction_number"),
            # Concurrent triggers, or a task delivered twice, must not compact the same messages twice.
            models.UniqueConstraint(
                fields=["session"],
                condition=models.Q(state__in=["pending", "running"]),
                name="compaction_one_open",
            ),
        ]
        indexes = [
            # The sweep looks for lost compactions.
            models.Index(
                fields=["created_at"],
                condition=models.Q(state__in=["pending", "running"]),
                name="compaction_open",
            ),
            # Trends compare the cost of the compactions in a period with what they saved.
            models.Index(fields=["finished_at"], name="compaction_finished"),
            # The scheduler looks for deterministic recaps that a model could replace.
            models.Index(
                fields=["finished_at"],
                condition=models.Q(awaits_upgrade=True),
                name="compaction_upgrade",
            ),
        ]

    #: The columns of `record`.
    RECORD = ("facts", "details")

    @property
    def record(self) -> dict[str, Any]:
        """The figures of the plan (`compaction.planning.record`), with notes. Assign it to change it."""
        return {**self.facts, **self.details}

    @record.setter
    def record(self, value: Mapping[str, Any]) -> None:
        self.facts = {name: each for name, each in value.items() if name not in _DETAILS}
        self.details = {name: each for name, each in value.items() if name in _DETAILS}

    def __str__(self) -> str:
        return f"compaction {self.number} of {self.session_id} ({self.state})"


class Edit(models.Model):
    """One recorded change to the prompt: the value of `compaction.edits.Edit`, without its references.

    Rows are written once and updated only when removed content is referenced later, because Postgres copies
    the whole row on an update. `PromptSnapshot` records which edits are in force.
    """

    compaction = models.ForeignKey(Compaction, on_delete=models.CASCADE, related_name="edits", db_index=False)
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="edits", db_index=False)
    ordinal = models.PositiveIntegerField()
    strategy = models.CharField(max_length=32)
    op = models.CharField(max_length=16)
    position = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    part = models.PositiveSmallIntegerField(null=True)
    # UTF-8 bytes, because content may contain \\u0000, which the text type of Postgres does not accept.
    # Packed by `sessions/store/edit_texts.py`, after the texts of the edits `bases`, a list of keys.
    text = models.BinaryField(default=b"")
    bases = ArrayField(models.BigIntegerField(), null=True)
    handle = models.CharField(max_length=64, null=True)
    reason = models.TextField(blank=True)
    tokens_before = models.PositiveIntegerField()
    tokens_after = models.PositiveIntegerField()
    # The first turn in which the assistant mentioned something that this edit removed, and what it mentioned.
    referenced_turn = models.PositiveIntegerField(null=True)
    referenced_text = models.TextField(blank=True)
    # The tool whose output the edit changed; "" for an eviction.
    tool = models.CharField(max_length=200, blank=True, default="")
    # How the agent reacted (`compaction.referenced.How`); "" if it was not referenced.
    referenced_how = models.CharField(max_length=16, blank=True, default="")

    class Meta:
        # One statement inserts all edits of a compaction, so their ordinals need no unique index. Indexes
        # with few distinct keys are small.
        indexes = [
            models.Index(fields=["compaction"], name="edit_compaction"),
            # Content is retrieved by its handle; reference rates read all edits of a session.
            models.Index(fields=["session"], name="edit_session"),
        ]

    def __str__(self) -> str:
        return f"{self.strategy} {self.position}..{self.end}"


class Recap(models.Model):
    """The message that replaces evicted messages. Editing it keeps the earlier versions."""

    class Author(models.TextChoices):
        MODEL = "model"
        EXTRACTOR = "extractor"
        PERSON = "person"

    compaction = models.ForeignKey(
        Compaction, on_delete=models.CASCADE, related_name="recaps", db_index=False
    )
    version = models.PositiveSmallIntegerField(default=1)
    author = models.CharField(max_length=16, choices=Author.choices)
    model = models.CharField(max_length=200, blank=True)
    # The text that users see, packed by `sessions/store/recap_lines.py` with the text of the edit
    # `edit_ordinal`, if there is one; see `sessions/selectors/compactions/recaps.py`.
    lines = models.BinaryField(null=True)
    edit_ordinal = models.PositiveIntegerField(null=True)
    # The `compaction.recap.Recap`, packed by `sessions/store/recap_bodies.py`; only for the newest recaps.
    body = models.BinaryField(null=True)
    tokens = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["compaction", "version"], name="recap_version")]

    def __str__(self) -> str:
        return f"recap v{self.version} of {self.compaction_id}"
