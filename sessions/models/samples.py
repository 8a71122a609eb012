"""The sample data of a project: fictional sessions that show new users what contextapp does."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from accounts.models import Project
from sessions.models.claimable import Claimable


class SampleLoad(Claimable):
    """The job that loads the sample data of a project, and the sessions that it has created.

    Workers claim the row. It is deleted when the sample data is removed. `total` and `done` count sessions.
    """

    class State(models.TextChoices):
        LOADING = "loading"
        DONE = "done"
        FAILED = "failed"

    project = models.OneToOneField(
        Project, on_delete=models.CASCADE, primary_key=True, related_name="sample_load"
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    state = models.CharField(max_length=16, choices=State.choices, default=State.LOADING)
    total = models.PositiveSmallIntegerField()
    # Not a foreign key, so that a session can be deleted like any other.
    sessions = ArrayField(models.UUIDField(), default=list)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"sample of {self.project_id} ({self.state})"

    @property
    def done(self) -> int:
        return len(self.sessions)
