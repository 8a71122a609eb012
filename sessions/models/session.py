"""Sessions, their prompt snapshots, and the versions of their system prompt and tools.

Counts are not `PositiveIntegerField`s: each statement that writes a row parses and checks all constraints of
its table, which would take a quarter of a push's time in the database.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Project
from compaction.dialects import get_dialect
from sessions.models.fields import JSONField, PackedField

#: The origin of sessions of which only telemetry is known. Another source that records them replaces it.
TELEMETRY = "telemetry"

#: The origin of sessions whose turns an agent pushes.
PUSHED = "api"

#: The origin of sessions that the gateway recorded. A log adds facts and missing calls to them.
GATEWAY = "gateway"

#: The origins of sessions that were recorded while they ran. Other sessions were imported from a log.
RECORDED = frozenset({PUSHED, GATEWAY, TELEMETRY})


class AgentSession(models.Model):
    """One run of an agent.

    Counters are updated on each write, so that no page or call has to sum over turns. Prompt sizes are in
    tokens, as reported by the provider or else estimated. The sums of tokens are the tokens billed over all
    calls; they are not a size.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Foreign keys that another index begins with have no separate index: a push that changes
    # `last_active_at` updates every index of the row.
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="agent_sessions", db_index=False
    )
    external_id = models.CharField(max_length=200)
    parent = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="children", db_index=False
    )
    # The position of the first message that differs from the parent's; NULL unless the session is a fork.
    forked_at = models.IntegerField(null=True)
    title = models.CharField(max_length=300, blank=True)
    agent = models.CharField(max_length=100, blank=True)
    model = models.CharField(max_length=200, blank=True)
    # The dialect in which messages are pushed (see `compaction.dialects`); NULL until it is detected.
    format = models.CharField(max_length=16, null=True)
    origin = models.CharField(max_length=32, default=PUSHED)
    # The member whose API key created the session, to attribute its cost. NULL for imported sessions.
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    tags = ArrayField(models.CharField(max_length=100), default=list)
    notes = models.TextField(blank=True)
    # Title and tags were set by a member or over the API: importing the log again keeps them.
    keeps_labels = models.BooleanField(default=False)
    metadata = JSONField(default=dict)
    budget_tokens = models.IntegerField(null=True)
    context_window = models.IntegerField(null=True)
    policy = JSONField(default=dict)

    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(default=timezone.now)
    last_active_at = models.DateTimeField(default=timezone.now)

    turn_count = models.IntegerField(default=0)
    message_count = models.IntegerField(default=0)
    # The prompt begins here: the first message after the last compaction by the client of an imported log.
    context_start = models.IntegerField(default=0)
    # Estimated tokens of the context by component (see `compaction.sizes.breakdown`).
    context_components = JSONField(default=dict)
    # The same for the prompt that is served: the context with its edits applied.
    shown_components = JSONField(default=dict)
    # Pushes brought, or repeated, the messages before this position. What follows was recorded by another
    # source, and may still be pushed.
    push_position = models.IntegerField(default=0)
    # Messages from this position on are served as pushed; those before it are in the prompt snapshot.
    snapshot_end = models.IntegerField(default=0)
    # The pushed messages are not valid for a provider, so a prompt cannot be served from the stored bytes.
    needs_repair = models.BooleanField(default=False)
    # Ids of the tool calls whose results are missing. Background triggers wait until there are none.
    open_calls = ArrayField(models.TextField(), default=list)
    # How the provider counts (`compaction.sizes.calibration.Calibration`). Empty until the session learns it.
    calibration = JSONField(default=dict)
    # Size of the prompt after the last triggered compaction, and its turn. Triggers wait for growth since.
    fired_tokens = models.IntegerField(null=True)
    fired_turn = models.IntegerField(null=True)
    # The plan boundary: the hard trigger compacts the messages up to this turn
    # (`compaction.planning.preparation`). NULL if it compacts the whole prompt: while the prompt is far from
    # the trigger, and after a change to anything else that the plan depends on.
    plan_turn = models.IntegerField(null=True)
    # Consecutive failures of background compactions, for the circuit breaker.
    failures = models.SmallIntegerField(default=0)
    # Time of the last failure. After a cool-down the circuit breaker allows one attempt.
    failed_at = models.DateTimeField(null=True)
    preamble_hash = models.BinaryField(max_length=16, null=True)
    preamble_version = models.SmallIntegerField(default=0)
    # Compactions that changed the prompt, including those reverted since.
    compaction_count = models.IntegerField(default=0)
    # Counts the changes of the prompt other than pushes: compactions and reverts. Part of the ETag.
    edits_revision = models.IntegerField(default=0)
    # Messages that the client sent only once (`Message.omitted_from`). Prompts do not contain them.
    omitted_count = models.IntegerField(default=0, db_default=0)

    last_prompt_tokens = models.IntegerField(default=0)
    peak_prompt_tokens = models.IntegerField(default=0)
    uncached_tokens = models.BigIntegerField(default=0)
    cache_read_tokens = models.BigIntegerField(default=0)
    cache_write_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_microusd = models.BigIntegerField(default=0)
    unpriced_turns = models.IntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "external_id"], name="session_external_id")]
        indexes = [
            # The session list, newest first, with keyset pagination.
            models.Index(fields=["project", "-last_active_at", "-id"], name="session_newest"),
            # The sub-agents of a session.
            models.Index(fields=["parent"], name="session_parent"),
            # The filters by tag and by metadata.
            GinIndex(fields=["tags"], name="session_tags"),
            GinIndex(fields=["metadata"], name="session_metadata", opclasses=["jsonb_path_ops"]),
            # The scheduler looks for idle sessions whose policy sets the idle trigger.
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
        """Name of the dialect in which the session is served, for the user interface."""
        return get_dialect(self.format).label

    @property
    def billed_tokens(self) -> int:
        """Input and output tokens of all calls. This is not a size."""
        return self.uncached_tokens + self.cache_read_tokens + self.cache_write_tokens + self.output_tokens


class ServedPrompt(models.Model):
    """The prompt of a session that was fetched last: its last turn, and the `edits_revision` it was built of.

    A compaction that follows it in the same turn does not change the past prompt of that turn.
    """

    # No constraint: inserting a row would wait for a push that holds the session's lock.
    session = models.OneToOneField(
        AgentSession,
        on_delete=models.CASCADE,
        primary_key=True,
        db_constraint=False,
        related_name="served_prompt",
    )
    turn = models.IntegerField()
    edits_revision = models.IntegerField()

    def __str__(self) -> str:
        return f"prompt after turn {self.turn} of {self.session_id}"


class PromptSnapshot(models.Model):
    """The messages before `AgentSession.snapshot_end` with their edits applied, so a fetch reads no history.

    Derived from the messages and the edits; rewritten at every compaction and revert. `data` is a packed
    `PromptOutline` in the dialect of the session, not repaired. A fetch leaves out those messages that the
    client has omitted since.
    """

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="prompt_snapshot"
    )
    compaction_number = models.IntegerField()
    data = models.BinaryField()
    # Key of the edit whose text is the dictionary for compressing `data`; NULL if there is none.
    text_edit = models.BigIntegerField(null=True)
    # Keys of the edits in force, so that the next compaction reads only these.
    edits = ArrayField(models.BigIntegerField(), default=list)

    def __str__(self) -> str:
        return f"snapshot of {self.session_id} after compaction {self.compaction_number}"


class Preamble(models.Model):
    """System prompt and tool definitions of a session, as JSON bytes.

    Versioned, so that a past prompt is rebuilt with the version that applied at its turn.
    """

    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="preambles", db_index=False
    )
    version = models.SmallIntegerField()
    from_turn = models.IntegerField()
    system = PackedField(null=True)
    tools = PackedField(null=True)
    system_tokens = models.IntegerField(default=0)
    tools_tokens = models.IntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "version"], name="preamble_version")]

    def __str__(self) -> str:
        return f"{self.session_id} v{self.version}"
