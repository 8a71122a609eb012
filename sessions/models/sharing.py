"""Links that show a session to people without an account."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from sessions.models.session import AgentSession


class SharedLink(models.Model):
    """A link to a read-only transcript. Only a hash of its token is stored."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="shared_links")
    token_hash = models.BinaryField(max_length=32, unique=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    shows_comments = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"link to {self.session_id} until {self.expires_at:%Y-%m-%d}"
