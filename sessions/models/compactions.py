"""Compactions: the batches of edits that change what is shown, and the recaps among them."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from sessions.models.session import AgentSession


class Compaction(models.Model):
    """One firing of a trigger. The row is the intent; a task is only the wake-up."""

    class State(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        DONE = "done"
        SKIPPED = "skipped"
        FAILED = "failed"
        REVERTED = "reverted"

    OPEN = (State.PENDING, State.RUNNING)
    #: Those that changed what was served; prompts of that time still show it.
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
    # The prompt of this turn is the first that shows the edits.
    turn_index = models.PositiveIntegerField()
    # Set by a revert: prompts of this turn and later no longer show the edits.
    reverted_turn = models.PositiveIntegerField(null=True)
    # The messages that the plan has seen; what came later is appended behind it.
    snapshot_position = models.PositiveIntegerField()
    policy = models.JSONField(default=dict)
    tokens_before = models.PositiveIntegerField(null=True)
    tokens_after = models.PositiveIntegerField(null=True)
    record = models.JSONField(default=dict)
    cost_microusd = models.PositiveBigIntegerField(null=True)
    # Counts the claims. Whoever runs the compaction writes only while the number is still its own.
    attempts = models.PositiveSmallIntegerField(default=0)
    # Renewed while a worker runs it: one that has passed belongs to a worker that is gone.
    lease_until = models.DateTimeField(null=True)
    # When a worker was last told of it; the message may have been lost.
    dispatched_at = models.DateTimeField(null=True)
    # The recap is deterministic where a model's was wanted: one later try to replace it is open.
    awaits_upgrade = models.BooleanField(default=False)
    # The compaction whose deterministic recap this one replaces.
    upgrades = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="upgraded_by")
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "number"], name="compaction_number"),
            # Two triggers at once, or a task delivered twice, must not compact the same span twice.
            models.UniqueConstraint(
                fields=["session"],
                condition=models.Q(state__in=["pending", "running"]),
                name="compaction_one_open",
            ),
        ]
        indexes = [
            # The sweep looks for what was lost.
            models.Index(
                fields=["created_at"],
                condition=models.Q(state__in=["pending", "running"]),
                name="compaction_open",
            ),
            # Trends set what the compactions of a span cost against what they saved.
            models.Index(fields=["finished_at"], name="compaction_finished"),
            # The beat looks for recaps that a model may now do better.
            models.Index(
                fields=["finished_at"],
                condition=models.Q(awaits_upgrade=True),
                name="compaction_upgrade",
            ),
        ]

    def __str__(self) -> str:
        return f"compaction {self.number} of {self.session_id} ({self.state})"


class Edit(models.Model):
    """One recorded change of what is shown; the value is `compaction.edits.Edit`, without its references.

    Rows are written once and change only where one was referenced later: an update would leave a whole row
    behind. Which of them still show is kept in `PromptSnapshot`.
    """

    compaction = models.ForeignKey(Compaction, on_delete=models.CASCADE, related_name="edits", db_index=False)
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="edits", db_index=False)
    ordinal = models.PositiveIntegerField()
    strategy = models.CharField(max_length=32)
    op = models.CharField(max_length=16)
    position = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    part = models.PositiveSmallIntegerField(null=True)
    # UTF-8 bytes and not text: a clipped content may hold what Postgres' text refuses (\\u0000).
    text = models.BinaryField(default=b"")
    handle = models.CharField(max_length=64, null=True)
    reason = models.TextField(blank=True)
    tokens_before = models.PositiveIntegerField()
    tokens_after = models.PositiveIntegerField()
    # The first turn whose assistant named something that this edit took away, and what it named.
    referenced_turn = models.PositiveIntegerField(null=True)
    referenced_text = models.TextField(blank=True)
    # The tool whose output the edit changed; "" for one that evicts.
    tool = models.CharField(max_length=200, blank=True, default="")
    # What the agent did about it (`compaction.referenced.How`); "" where it was not referenced.
    referenced_how = models.CharField(max_length=16, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["compaction", "ordinal"], name="edit_ordinal")]
        indexes = [
            # Expanding looks a content up by its handle; rates take all edits of a session.
            models.Index(fields=["session", "handle"], name="edit_handle"),
        ]

    def __str__(self) -> str:
        return f"{self.strategy} {self.position}..{self.end}"


class Recap(models.Model):
    """What stands for an evicted span. Editing one by hand keeps the versions before."""

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
    # What people see of it, compressed behind the text of the compaction's edit of that ordinal, if any;
    # NULL where it was stored before there were lines. See `sessions/recaps.py`.
    lines = models.BinaryField(null=True)
    edit_ordinal = models.PositiveIntegerField(null=True)
    # JSON of `compaction.recap.Recap`, as bytes for the reason given at `Edit.text`; of the newest ones only.
    body = models.BinaryField(null=True)
    tokens = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["compaction", "version"], name="recap_version")]

    def __str__(self) -> str:
        return f"recap v{self.version} of {self.compaction_id}"
