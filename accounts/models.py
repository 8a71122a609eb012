"""Projects (tenants), their members and API keys, and the audit log."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

#: The purpose for which the provider keys of projects are encrypted (`accounts.encryption`).
PROVIDER_SECRETS = "provider-secrets"


class Role(models.TextChoices):
    """The role of a member: viewers read, members also change sessions, owners also change the project."""

    OWNER = "owner"
    MEMBER = "member"
    VIEWER = "viewer"


class Scope(models.TextChoices):
    """The scopes of an API key: `push` writes turns, `read` reads, `admin` deletes and configures."""

    PUSH = "push"
    READ = "read"
    ADMIN = "admin"


class Project(models.Model):
    """A tenant. All other data belongs to exactly one project."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(unique=True, max_length=64)
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)
    # The summarizer model: empty for the server's default, "off" for none (no data leaves the server).
    summarizer_model = models.CharField(max_length=200, blank=True)
    # The compaction policy of new sessions (`Policy.from_json`). A session can override its settings.
    default_policy = models.JSONField(default=dict)
    # Sessions are deleted this many days after their last turn, from `retention_begins_at`. NULL: never.
    retention_days = models.PositiveIntegerField(null=True)
    retention_begins_at = models.DateTimeField(null=True)
    # Additional secrets to redact: [{"kind", "pattern"}] in RE2 syntax (see `redaction/project.py`).
    redaction_patterns = models.JSONField(default=list)
    # Prices that differ from the public table (see `pricing/custom.py`).
    custom_prices = models.JSONField(default=list)
    # Whether working memory is updated automatically from tool calls.
    memory_upkeep = models.BooleanField(default=False)
    # The model that extracts memory from new turns; empty for none.
    memory_model = models.CharField(max_length=200, blank=True)
    # Whether facts from the memory of idle sessions are proposed as shared facts. Proposals need a review
    # before an agent sees them, and call no model.
    memory_proposals = models.BooleanField(default=True)
    # Custom fields of working memory: [{"name", "single", "max_items", "description"}].
    memory_fields = models.JSONField(default=list)
    # Settings of the gateway: {"mode", "upstreams": {provider: URL}, "adds_usage"}.
    gateway = models.JSONField(default=dict)
    # Provider keys that the gateway uses for the project's agents: {provider: encrypted key}.
    provider_secrets = models.JSONField(default=dict)
    # Whether members may create links that show a session without a login.
    allows_sharing = models.BooleanField(default=False)
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


class Invitation(models.Model):
    """An open invitation to a project, deleted when it is used. Only the SHA-256 of its token is stored."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=16, choices=Role.choices)
    # The address that the link was made for, or empty.
    email = models.EmailField(blank=True)
    hash = models.BinaryField(max_length=32, unique=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"invitation of {self.email or 'a user'} to {self.project}"


class ApiKey(models.Model):
    """The API key of an agent. Only its prefix and the SHA-256 of its secret are stored.

    A fast hash is safe because the secret has 256 random bits, which cannot be guessed, and it keeps
    authentication fast.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=200)
    prefix = models.CharField(max_length=16, unique=True)
    hash = models.BinaryField(max_length=32)
    scopes = ArrayField(models.CharField(max_length=16, choices=Scope.choices))
    # Requests per minute. NULL: the server's default.
    rate_limit = models.PositiveIntegerField(null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"


class AuditEvent(models.Model):
    """A change by a user, an API key or the server. Events are never updated."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE, related_name="audit_events")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    api_key = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL)
    action = models.CharField(max_length=64)
    target = models.CharField(max_length=200, blank=True)
    detail = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        # The page of the audit log lists the newest events of a project.
        indexes = [models.Index(fields=["project", "-at"], name="audit_newest")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.action} {self.target}"


class LoginFailure(models.Model):
    """A failed login. Kept for some minutes to limit the rate of guesses."""

    name = models.CharField(max_length=150)
    address = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        # A login counts the failures of its address; a failure deletes the old ones.
        indexes = [
            models.Index(fields=["address", "at"], name="login_failure_address"),
            models.Index(fields=["at"], name="login_failure_old"),
        ]

    def __str__(self) -> str:
        return f"{self.name} from {self.address}"
