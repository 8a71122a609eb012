"""Record changes of a session in the audit log of its project."""

from __future__ import annotations

from typing import Any

from accounts.actors import Actor
from accounts.services.audit import audit_record
from sessions.models import AgentSession


def session_audit(session: AgentSession, action: str, actor: Actor, /, **detail: Any) -> None:
    audit_record(
        action=action, project=session.project, actor=actor, target=session.external_id, detail=detail
    )
