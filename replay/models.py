"""Replays of stored sessions: their settings, progress and results."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Project
from sessions.models.claimable import Claimable
from sessions.models.fields import PackedJSONField
from sessions.models.session import AgentSession


class ReplayRun(Claimable):
    """Replays of a project's sessions under several policies and budgets. Workers claim the row.

    A run with summaries by a model is estimated first and then waits for a user's confirmation.
    """

    class State(models.TextChoices):
        ESTIMATING = "estimating"
        WAITING = "waiting", "waiting for confirmation"
        RUNNING = "running"
        DONE = "done"
        CANCELLED = "cancelled"

    OPEN = (State.ESTIMATING, State.RUNNING)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="replay_runs", db_index=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    title = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.RUNNING)
    # JSON of `compaction.policy.Policy`, and limits: {"ratio": …} or {"tokens": …}. Each pair of a policy
    # and a limit is a setting; they are numbered limit by limit.
    policies = models.JSONField(default=list)
    limits = models.JSONField(default=list)
    # JSON of the project's custom prices when the run was created; NULL for runs of earlier versions.
    custom_prices = models.JSONField(null=True)
    with_model = models.BooleanField(default=False)
    estimate_microusd = models.PositiveBigIntegerField(null=True)
    sessions = models.PositiveIntegerField(default=0)
    # Total number of results, and number of completed ones.
    steps = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            # The list of a project's runs, newest first; ids are ordered by time.
            models.Index(fields=["project", "-id"], name="replay_newest"),
            # The sweep looks for runs without a worker.
            models.Index(
                fields=["lease_until"],
                condition=models.Q(state__in=["estimating", "running"]),
                name="replay_open",
            ),
        ]

    def __str__(self) -> str:
        """Return the title, or the compared policies and limits."""
        policies = ", ".join(policy["name"] for policy in self.policies)
        limits = ", ".join(str(limit.get("ratio") or f"{limit['tokens']:,}") for limit in self.limits)
        return self.title or f"{policies} at {limits}"


class ReplayTarget(models.Model):
    """One session of a run."""

    run = models.ForeignKey(ReplayRun, on_delete=models.CASCADE, related_name="targets", db_index=False)
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="replay_targets")
    ordinal = models.PositiveIntegerField()
    # Estimated cost of the model's summaries, NULL until it is known.
    estimate_microusd = models.PositiveBigIntegerField(null=True)
    # Actual cost of the recorded calls, NULL if the session reports no usage.
    actual_microusd = models.PositiveBigIntegerField(null=True)
    # `compaction.replay.costs.Billing` of the session, NULL until it is known.
    written_share = models.FloatField(null=True)
    one_hour_cache = models.BooleanField(null=True)
    # Consecutive attempts without a result: a session that kills its workers must not be tried forever.
    stalls = models.PositiveSmallIntegerField(default=0, db_default=0)
    finished_at = models.DateTimeField(null=True)
    # Why the session could not be replayed; "" if it could.
    error = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "ordinal"], name="replay_target_once")]

    def __str__(self) -> str:
        return f"{self.session_id} of {self.run_id}"


class ReplayResult(models.Model):
    """The result of one session under one setting.

    `body` is the JSON of a `Result` (`compaction.replay.result`) with the values of each call; `figures` are
    its sums (`Totals`). `budget_tokens` is the budget in provider tokens, including what the log does not
    contain; NULL in results of earlier versions.
    """

    target = models.ForeignKey(ReplayTarget, on_delete=models.CASCADE, related_name="results", db_index=False)
    setting = models.PositiveSmallIntegerField()
    figures = models.JSONField(default=dict)
    body = PackedJSONField()
    summary_microusd = models.PositiveBigIntegerField(default=0)
    budget_tokens = models.PositiveBigIntegerField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["target", "setting"], name="replay_result_once")]

    def __str__(self) -> str:
        return f"setting {self.setting} of {self.target_id}"
