"""Imports of logs: jobs with their uploads and results, and the logs that are already imported."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Project
from sessions.models.claimable import Claimable
from sessions.models.session import AgentSession


class ImportJob(Claimable):
    """The import of one uploaded log. Workers claim the row and import a slice at a time.

    The first slice reads the log and divides it into steps. Until then, `digest` is NULL and totals are 0.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    OPEN = (State.PENDING, State.RUNNING)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="import_jobs", db_index=False)
    name = models.CharField(max_length=200)
    # The format requested by the client, "" to detect it, and the one with which the log was read.
    requested_format = models.CharField(max_length=40, blank=True)
    format = models.CharField(max_length=40, blank=True)
    size = models.PositiveBigIntegerField()
    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    error_code = models.CharField(max_length=40, blank=True)
    error = models.TextField(blank=True)
    # Consecutive claims without progress: a log that kills its workers must not be tried forever.
    stalls = models.PositiveSmallIntegerField(default=0)
    sessions_total = models.PositiveIntegerField(default=0)
    sessions_done = models.PositiveIntegerField(default=0)
    messages_total = models.PositiveIntegerField(default=0)
    messages_done = models.PositiveIntegerField(default=0)
    digest = models.BinaryField(max_length=32, null=True)
    # Unreadable lines: the first ones as {"line", "reason"}, and the number of all.
    damages = models.JSONField(default=list)
    damage_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            # The list of a project's jobs, newest first; ids are ordered by time.
            models.Index(fields=["project", "-id"], name="import_job_newest"),
            # The sweep looks for jobs without a worker.
            models.Index(
                fields=["lease_until"],
                condition=models.Q(state__in=["pending", "running"]),
                name="import_job_open",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ImportPart(models.Model):
    """A part of an uploaded log, compressed and encrypted. It is deleted when the log has been read."""

    job = models.ForeignKey(ImportJob, on_delete=models.CASCADE, related_name="parts", db_index=False)
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="import_part_once")]

    def __str__(self) -> str:
        return f"part {self.number} of {self.job_id}"


class ImportStep(models.Model):
    """Consecutive turns of a session of the log, compressed and encrypted.

    The steps of a session are deleted when all of them are imported, and with the end of the job.
    """

    job = models.ForeignKey(ImportJob, on_delete=models.CASCADE, related_name="steps", db_index=False)
    # The session's place in the log, and the first of these turns.
    ordinal = models.PositiveIntegerField()
    first_turn = models.PositiveIntegerField()
    is_last = models.BooleanField()
    data = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "ordinal", "first_turn"], name="import_step_once")
        ]

    def __str__(self) -> str:
        return f"session {self.ordinal} from turn {self.first_turn} of {self.job_id}"


class ImportJobSession(models.Model):
    """What a job did with one session of its log. A long session is imported in several steps.

    `log_turns` and `log_messages` count what is imported of the log so far. `session` is NULL after a
    conflict, and after the session was deleted.
    """

    class State(models.TextChoices):
        PARTIAL = "partial"  #: more steps follow, unless the job has ended
        NEW = "new"
        GROWN = "grown"
        UNCHANGED = "unchanged"
        CONFLICT = "conflict"
        SKIPPED = "skipped"  #: a message is invalid; reported as damage

    job = models.ForeignKey(ImportJob, on_delete=models.CASCADE, related_name="sessions", db_index=False)
    ordinal = models.PositiveIntegerField()
    session = models.ForeignKey(AgentSession, null=True, on_delete=models.SET_NULL, related_name="+")
    external_id = models.CharField(max_length=200)
    state = models.CharField(max_length=16, choices=State.choices)
    log_turns = models.PositiveIntegerField(default=0)
    log_messages = models.PositiveIntegerField(default=0)
    turns = models.PositiveIntegerField(default=0)
    messages = models.PositiveIntegerField(default=0)
    reason = models.TextField(blank=True)
    # Secrets that were redacted, by kind.
    redacted = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "ordinal"], name="import_job_session_once")]

    def __str__(self) -> str:
        return f"{self.external_id} ({self.state})"


class ImportedLog(models.Model):
    """A state of a log that was imported into a session, identified by its hash.

    It is deleted with the session, so a deleted session can be imported again.
    """

    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="imported_logs", db_index=False
    )
    digest = models.BinaryField(max_length=32)
    # Sessions in the log. If fewer are stored, the log is read again.
    sessions = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "digest"], name="imported_log_once")]

    def __str__(self) -> str:
        return f"log {bytes(self.digest).hex()[:12]} of {self.session_id}"
