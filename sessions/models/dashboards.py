"""What the pages keep: the profile of each session, and the views that people saved."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from accounts.models import Project
from sessions.models.session import AgentSession


class SessionProfile(models.Model):
    """The shape of a session for lists: its sparkline and its health, so that no list reads turns.

    Derived; the beat makes it anew some seconds after a session has moved (`services/profiles.py`).
    """

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="profile"
    )
    # As of so many turns, and so many changes of what is served.
    turn_count = models.PositiveIntegerField()
    edits_revision = models.PositiveIntegerField()
    lost_references = models.PositiveIntegerField(default=0)
    # The largest prompt of each stretch of the session, in tokens.
    sparkline = ArrayField(models.PositiveIntegerField(), default=list)
    grade = models.CharField(max_length=1)
    score = models.PositiveSmallIntegerField()
    # [{"code", "points", "text"}], what costs most first.
    reasons = models.JSONField(default=list)
    updated_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.session_id}: {self.grade}"


class SavedView(models.Model):
    """A filter of the list of sessions under a name, for one person in one project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="saved_views", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=80)
    # The query of the list's address.
    query = models.CharField(max_length=1_000)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "user", "name"], name="saved_view_name")]

    def __str__(self) -> str:
        return self.name
