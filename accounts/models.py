"""Who may see what: projects (tenants), their members, API keys, and the audit trail."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7


class Role(models.TextChoices):
    """What a member may do: a viewer reads, a member also changes sessions, an owner also the project."""

    OWNER = "owner"
    MEMBER = "member"
    VIEWER = "viewer"


class Scope(models.TextChoices):
    """What an API key may do: `push` writes turns, `read` reads, `admin` deletes and configures."""

    PUSH = "push"
    READ = "read"
    ADMIN = "admin"


class Project(models.Model):
    """A tenant. Everything stored belongs to exactly one."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(unique=True, max_length=64)
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)
    # The model that summarises: empty for the server's default, "off" for none (nothing leaves the server).
    summarizer_model = models.CharField(max_length=200, blank=True)
    # Settings of compaction for new sessions, under what a session says itself (`Policy.from_json`).
    default_policy = models.JSONField(default=dict)
    # Sessions that have rested for so many days are deleted, from `retention_begins_at` on; NULL: kept.
    retention_days = models.PositiveIntegerField(null=True)
    retention_begins_at = models.DateTimeField(null=True)
    # Secrets of the project's own: [{"kind", "pattern"}], in RE2 syntax (see `sessions/redaction/extra.py`).
    redaction_patterns = models.JSONField(default=list)
    # Prices that differ from the public table (see `pricing/custom.py`).
    custom_prices = models.JSONField(default=list)
    # Whether working memory is kept current from what tools are seen to do.
    memory_upkeep = models.BooleanField(default=False)
    # The model that reads new turns for it beside; empty: none does, and nothing is paid for.
    memory_model = models.CharField(max_length=200, blank=True)
    # Whether what a session's memory says and may hold elsewhere is proposed for review when it has come to
    # rest. On: it changes no prompt and no session, asks no model, and nothing is offered unreviewed.
    memory_proposals = models.BooleanField(default=True)
    # Fields of working memories beyond the usual ones: [{"name", "single", "max_items", "description"}].
    memory_fields = models.JSONField(default=list)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, through="Membership", related_name="projects")

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="membership_once"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role"),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"


class ApiKey(models.Model):
    """A key of an agent. The key itself is shown once; stored are its prefix and its SHA-256.

    A plain hash is enough here: the secret has 256 random bits, so there is nothing to guess that a
    slow hash would protect, and a fast one keeps authentication off the hot path.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=200)
    prefix = models.CharField(max_length=16, unique=True)
    hash = models.BinaryField(max_length=32)
    scopes = ArrayField(models.CharField(max_length=16, choices=Scope.choices))
    # Requests a minute; NULL: the server's default.
    rate_limit = models.PositiveIntegerField(null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"


class AuditEvent(models.Model):
    """Something that a person or a key did and that somebody may ask about later. Never changed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE, related_name="audit_events")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    api_key = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL)
    action = models.CharField(max_length=64)
    target = models.CharField(max_length=200, blank=True)
    detail = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        # The trail is read newest first, within a project.
        indexes = [models.Index(fields=["project", "-at"], name="audit_newest")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.action} {self.target}"


class LoginFailure(models.Model):
    """A password that did not match. Kept for minutes, so that guessing becomes slow."""

    name = models.CharField(max_length=150)
    address = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        # Each log-in counts the failures of its address; each failure deletes the old ones.
        indexes = [
            models.Index(fields=["address", "at"], name="login_failure_address"),
            models.Index(fields=["at"], name="login_failure_old"),
        ]

    def __str__(self) -> str:
        return f"{self.name} from {self.address}"
