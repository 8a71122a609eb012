"""A session, its counters, and the versions of its system text and tools."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Project
from compaction.dialects import get_dialect


class AgentSession(models.Model):
    """One run of an agent. The counters are kept at write time, so that no page or call sums a history.

    Prompt sizes are tokens: what the provider reported where it did, else our estimate. The sums of tokens
    are what was billed over all calls; they are never a size.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Foreign keys have no index of their own where another one begins with them: a push that moves
    # `last_active_at` writes every index of the row anew.
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="agent_sessions", db_index=False
    )
    external_id = models.CharField(max_length=200)
    parent = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="children", db_index=False
    )
    title = models.CharField(max_length=300, blank=True)
    agent = models.CharField(max_length=100, blank=True)
    model = models.CharField(max_length=200, blank=True)
    # The dialect in which messages are pushed; see `compaction.dialects`.
    format = models.CharField(max_length=16)
    origin = models.CharField(max_length=32, default="api")
    # Whose key made the session: the member that its cost is told for. Nobody's where a log was imported.
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    tags = ArrayField(models.CharField(max_length=100), default=list)
    metadata = models.JSONField(default=dict)
    budget_tokens = models.PositiveIntegerField(null=True)
    context_window = models.PositiveIntegerField(null=True)
    policy = models.JSONField(default=dict)

    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(default=timezone.now)
    last_active_at = models.DateTimeField(default=timezone.now)

    turn_count = models.PositiveIntegerField(default=0)
    message_count = models.PositiveIntegerField(default=0)
    # The first message that is still in the client's context: a compaction by the client moves it on.
    context_start = models.PositiveIntegerField(default=0)
    # Tokens (estimate) in the context by component, so that a push adds to them and sums no history.
    context_components = models.JSONField(default=dict)
    # The same of what is served: the context with its edits applied.
    shown_components = models.JSONField(default=dict)
    # Messages from this position on are served as pushed; those before it are in the prompt snapshot.
    snapshot_end = models.PositiveIntegerField(default=0)
    # What was pushed is not valid as it stands: a prompt cannot be put together from the stored bytes.
    needs_repair = models.BooleanField(default=False)
    # Ids of the tool calls that wait for their results: no quiet point, and no prompt to send, until then.
    open_calls = ArrayField(models.TextField(), default=list)
    # The provider's count of a prompt divided by ours, smoothed (see `compaction.meter`).
    calibration = models.FloatField(default=1.0)
    # The re-fire cursor: size of the prompt behind the last firing of a trigger, and its turn.
    fired_tokens = models.PositiveIntegerField(null=True)
    fired_turn = models.PositiveIntegerField(null=True)
    # Background compactions that failed in a row, for the circuit breaker.
    failures = models.PositiveSmallIntegerField(default=0)
    # The last of them: the breaker lets one try through some time after it.
    failed_at = models.DateTimeField(null=True)
    preamble_hash = models.BinaryField(max_length=16, null=True)
    preamble_version = models.PositiveSmallIntegerField(default=0)
    # Compactions that changed what is served, those that were reverted since included.
    compaction_count = models.PositiveIntegerField(default=0)
    # Counts every change of what is served that is no push: compactions, reverts. Part of the ETag.
    edits_revision = models.PositiveIntegerField(default=0)

    last_prompt_tokens = models.PositiveIntegerField(default=0)
    peak_prompt_tokens = models.PositiveIntegerField(default=0)
    uncached_tokens = models.PositiveBigIntegerField(default=0)
    cache_read_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cost_microusd = models.PositiveBigIntegerField(default=0)
    unpriced_turns = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "external_id"], name="session_external_id")]
        indexes = [
            # The list of a project, newest first, by keyset.
            models.Index(fields=["project", "-last_active_at", "-id"], name="session_newest"),
            # The sub-agents of a session.
            models.Index(fields=["parent"], name="session_parent"),
            # The filters by tag and by metadata.
            GinIndex(fields=["tags"], name="session_tags"),
            GinIndex(fields=["metadata"], name="session_metadata", opclasses=["jsonb_path_ops"]),
            # The beat looks for sessions that have gone idle, where the policy asks for it.
            models.Index(
                fields=["last_active_at"],
                condition=models.Q(policy__has_key="idle_seconds"),
                name="session_idle",
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.external_id

    @property
    def format_label(self) -> str:
        """Name of the session's dialect in the user interface."""
        return get_dialect(self.format).label

    @property
    def billed_tokens(self) -> int:
        """Tokens of all calls together, input and output. Not a size."""
        return self.uncached_tokens + self.cache_read_tokens + self.cache_write_tokens + self.output_tokens


class PromptSnapshot(models.Model):
    """The messages before `AgentSession.snapshot_end` with their edits applied: a fetch reads no history.

    Derived from the messages and the edits; rewritten at every compaction and revert. `data` is a packed
    `PromptMessages` in the dialect of the session, not repaired.
    """

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="prompt_snapshot"
    )
    compaction_number = models.PositiveIntegerField()
    data = models.BinaryField()
    # The edits in force: what comes next reads these and no others.
    edits = ArrayField(models.BigIntegerField(), default=list)

    def __str__(self) -> str:
        return f"snapshot of {self.session_id} after compaction {self.compaction_number}"


class Preamble(models.Model):
    """What stands before the messages of a prompt: system text and tool definitions, as JSON bytes.

    Versioned: a prompt of the past is rebuilt with the version that held at its turn.
    """

    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="preambles", db_index=False
    )
    version = models.PositiveSmallIntegerField()
    from_turn = models.PositiveIntegerField()
    system = models.BinaryField(null=True)
    tools = models.BinaryField(null=True)
    system_tokens = models.PositiveIntegerField(default=0)
    tools_tokens = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "version"], name="preamble_version")]

    def __str__(self) -> str:
        return f"{self.session_id} v{self.version}"
