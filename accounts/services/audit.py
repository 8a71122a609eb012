"""The audit log."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from accounts.models import ApiKey, AuditEvent, Project


def audit_record(
    *,
    action: str,
    project: Project | None = None,
    user: User | None = None,
    api_key: ApiKey | None = None,
    target: str = "",
    detail: dict[str, Any] | None = None,
) -> AuditEvent:
    """Record an action by a user or an API key."""
    return AuditEvent.objects.create(
        action=action, project=project, user=user, api_key=api_key, target=target[:200], detail=detail or {}
    )
