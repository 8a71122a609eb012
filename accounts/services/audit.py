"""The audit log."""

from __future__ import annotations

from typing import Any

from accounts.actors import SYSTEM, Actor
from accounts.models import AuditEvent, Project


def audit_record(
    *,
    action: str,
    project: Project | None,
    actor: Actor = SYSTEM,
    target: str = "",
    detail: dict[str, Any] | None = None,
) -> AuditEvent:
    """Record a change and its author."""
    return AuditEvent.objects.create(
        action=action,
        project=project,
        user=actor.user,
        api_key_id=actor.api_key_id,
        target=target[:200],
        detail=detail or {},
    )
