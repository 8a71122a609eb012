"""Replays of stored sessions: what was asked for, how far it is, and what came of it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Project
from sessions.models.claimable import Claimable
from sessions.models.session import AgentSession


class ReplayRun(Claimable):
    """Sessions of a project under a list of policies and budgets. The row is the intent, as of a compaction.

    A run that asks a model for summaries is estimated first and then waits for somebody's word.
    """

    class State(models.TextChoices):
        ESTIMATING = "estimating"
        WAITING = "waiting", "waits for confirmation"
        RUNNING = "running"
        DONE = "done"
        CANCELLED = "cancelled"

    OPEN = (State.ESTIMATING, State.RUNNING)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="replay_runs", db_index=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    title = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.RUNNING)
    # JSON of `compaction.policy.Policy`, and of limits: {"ratio": …} or {"tokens": …}. A setting is a pair of
    # one of each, numbered limit by limit.
    policies = models.JSONField(default=list)
    limits = models.JSONField(default=list)
    with_model = models.BooleanField(default=False)
    estimate_microusd = models.PositiveBigIntegerField(null=True)
    sessions = models.PositiveIntegerField(default=0)
    # Results wanted and made.
    steps = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            # The list of a project, newest first: ids are in the order of time.
            models.Index(fields=["project", "-id"], name="replay_newest"),
            # The sweep looks for runs that nobody works on.
            models.Index(
                fields=["lease_until"],
                condition=models.Q(state__in=["estimating", "running"]),
                name="replay_open",
            ),
        ]

    def __str__(self) -> str:
        """The title, else what is compared."""
        policies = ", ".join(policy["name"] for policy in self.policies)
        limits = ", ".join(str(limit.get("ratio") or f"{limit['tokens']:,}") for limit in self.limits)
        return self.title or f"{policies} at {limits}"


class ReplayTarget(models.Model):
    """One session of a run."""

    run = models.ForeignKey(ReplayRun, on_delete=models.CASCADE, related_name="targets", db_index=False)
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="replay_targets")
    ordinal = models.PositiveIntegerField()
    # What the model's summaries would cost, NULL until it is known.
    estimate_microusd = models.PositiveBigIntegerField(null=True)
    # What the calls really cost by the session's own usage, NULL where it tells none.
    actual_microusd = models.PositiveBigIntegerField(null=True)
    finished_at = models.DateTimeField(null=True)
    # Why there are no results, where it could not be replayed.
    error = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "ordinal"], name="replay_target_once")]

    def __str__(self) -> str:
        return f"{self.session_id} of {self.run_id}"


class ReplayResult(models.Model):
    """One session under one setting. `figures` are its sums (`compaction.replay.Totals`), `body` is the
    packed JSON of `compaction.replay.Result` with the curves."""

    target = models.ForeignKey(ReplayTarget, on_delete=models.CASCADE, related_name="results", db_index=False)
    setting = models.PositiveSmallIntegerField()
    figures = models.JSONField(default=dict)
    body = models.BinaryField()
    summary_microusd = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["target", "setting"], name="replay_result_once")]

    def __str__(self) -> str:
        return f"setting {self.setting} of {self.target_id}"
