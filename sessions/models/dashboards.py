"""Data of the dashboard: session profiles, saved views, stars and dismissed hints."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from accounts.models import Project
from sessions.models.session import AgentSession


class SessionProfile(models.Model):
    """Sparkline and health of a session, so that lists do not read turns.

    Derived: the scheduler refreshes it some seconds after a session changes.
    """

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="profile"
    )
    # The state of the session that the profile was computed from.
    turn_count = models.PositiveIntegerField()
    edits_revision = models.PositiveIntegerField()
    lost_references = models.PositiveIntegerField(default=0)
    # The largest prompt of each section of the session, in tokens.
    sparkline = ArrayField(models.PositiveIntegerField(), default=list)
    # Empty, and no score, if no call reported its usage and nothing was compacted.
    grade = models.CharField(max_length=1, blank=True)
    score = models.PositiveSmallIntegerField(null=True)
    # [{"code", "points", "text"}], most points first.
    reasons = models.JSONField(default=list)
    updated_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.session_id}: {self.grade}"


class SavedView(models.Model):
    """A named filter of the session list or of trends, for one user in one project."""

    class Page(models.TextChoices):
        SESSIONS = "sessions"
        TRENDS = "trends"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="saved_views", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    page = models.CharField(max_length=16, choices=Page.choices, default=Page.SESSIONS)
    name = models.CharField(max_length=80)
    # The query string of the page.
    query = models.CharField(max_length=1_000)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user", "page", "name"], name="saved_view_name")
        ]

    def __str__(self) -> str:
        return self.name


class Star(models.Model):
    """A session that a user has starred, to find it again."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="stars", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "user"], name="star_once")]

    def __str__(self) -> str:
        return f"star of {self.user_id} on {self.session_id}"


class DismissedHint(models.Model):
    """A hint that a user has dismissed. Hints are listed in `sessions/pages/hints.py`."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    hint = models.CharField(max_length=40)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "hint"], name="dismissed_hint_once")]

    def __str__(self) -> str:
        return f"{self.hint} of {self.user_id}"
