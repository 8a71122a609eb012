"""Create and revoke API keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.actors import SYSTEM, Actor
from accounts.keys import key_generate
from accounts.models import ApiKey, Project, Scope
from accounts.services.audit import audit_record


@transaction.atomic
def api_key_create(
    *,
    project: Project,
    name: str,
    scopes: Sequence[str] = (Scope.PUSH, Scope.READ),
    actor: Actor = SYSTEM,
    expires_at: datetime | None = None,
    rate_limit: int | None = None,
) -> tuple[ApiKey, str]:
    """Return a new key and its text, which is not stored and cannot be shown again."""
    new = key_generate()
    key = ApiKey.objects.create(
        project=project,
        name=name,
        prefix=new.prefix,
        hash=new.hash,
        scopes=list(scopes),
        created_by=actor.user,
        expires_at=expires_at,
        rate_limit=rate_limit,
    )
    limits = {
        "expires_at": expires_at.isoformat(timespec="seconds") if expires_at else None,
        "rate_limit": rate_limit,
    }
    set_limits = {limit: value for limit, value in limits.items() if value is not None}
    detail = {"name": name, "scopes": list(scopes), **set_limits}
    audit_record(action="api_key.created", project=project, actor=actor, target=new.prefix, detail=detail)
    return key, new.text


@transaction.atomic
def api_key_revoke(*, key: ApiKey, actor: Actor = SYSTEM) -> None:
    """Revoke a key. Does nothing if it is already revoked."""
    if not ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return
    audit_record(action="api_key.revoked", project=key.project, actor=actor, target=key.prefix)


def api_key_use_record(*, key: ApiKey) -> None:
    """Set the time of the key's last use."""
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=Now())
