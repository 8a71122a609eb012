"""Writes: projects, members, keys. Every change that somebody may ask about leaves an audit event."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from accounts.keys import key_generate
from accounts.models import ApiKey, AuditEvent, Membership, Project, Role, Scope


def audit_record(
    *,
    action: str,
    project: Project | None = None,
    user: User | None = None,
    api_key: ApiKey | None = None,
    target: str = "",
    detail: dict[str, Any] | None = None,
) -> AuditEvent:
    return AuditEvent.objects.create(
        action=action, project=project, user=user, api_key=api_key, target=target[:200], detail=detail or {}
    )


@transaction.atomic
def project_create(*, name: str, slug: str, owner: User | None = None) -> Project:
    project = Project.objects.create(name=name, slug=slug)
    if owner is not None:
        Membership.objects.create(project=project, user=owner, role=Role.OWNER)
    audit_record(action="project.created", project=project, user=owner, target=slug)
    return project


@transaction.atomic
def project_update(
    *,
    project: Project,
    changes: Mapping[str, Any],
    user: User | None = None,
    api_key: ApiKey | None = None,
) -> None:
    """Sets fields of the project; the audit trail keeps what they were before."""
    locked = Project.objects.select_for_update().get(pk=project.pk)
    detail = {
        name: {"from": _told(getattr(locked, name)), "to": _told(value)}
        for name, value in changes.items()
        if getattr(locked, name) != value
    }
    if not detail:
        return
    for name in detail:
        setattr(locked, name, changes[name])
        setattr(project, name, changes[name])
    locked.save(update_fields=list(detail))
    audit_record(
        action="project.changed",
        project=locked,
        user=user,
        api_key=api_key,
        target=locked.slug,
        detail=detail,
    )


def _told(value: Any) -> Any:
    """A value as the audit trail keeps it: JSON."""
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else value


@transaction.atomic
def api_key_create(
    *,
    project: Project,
    name: str,
    scopes: Sequence[str] = (Scope.PUSH, Scope.READ),
    created_by: User | None = None,
    expires_at: datetime | None = None,
    rate_limit: int | None = None,
) -> tuple[ApiKey, str]:
    """A new key and the text that its agent sends. The text is not stored and cannot be shown again."""
    new = key_generate()
    key = ApiKey.objects.create(
        project=project,
        name=name,
        prefix=new.prefix,
        hash=new.hash,
        scopes=list(scopes),
        created_by=created_by,
        expires_at=expires_at,
        rate_limit=rate_limit,
    )
    audit_record(
        action="api_key.created",
        project=project,
        user=created_by,
        target=new.prefix,
        detail={"name": name, "scopes": list(scopes)},
    )
    return key, new.text


@transaction.atomic
def api_key_revoke(*, key: ApiKey, user: User | None = None) -> None:
    """The key is refused from now on. Revoking it again changes nothing."""
    if not ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return
    audit_record(action="api_key.revoked", project=key.project, user=user, target=key.prefix)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStart:
    """What the first start made, each shown to the person once. None: it was there already."""

    api_key: str | None
    admin_password: str | None


@transaction.atomic
def bootstrap(*, admin_name: str = "admin") -> FirstStart:
    """The default project with its key, and the admin who owns it. Safe to call at every start."""
    admin, password = User.objects.filter(username=admin_name).first(), None
    if admin is None and not User.objects.filter(is_superuser=True).exists():
        password = secrets.token_urlsafe(15)
        admin = User.objects.create_superuser(admin_name, password=password)
    project = Project.objects.filter(slug="default").first()
    if project is not None or Project.objects.exists():
        return FirstStart(api_key=None, admin_password=password)
    project = project_create(name="Default project", slug="default", owner=admin)
    _, text = api_key_create(project=project, name="default", scopes=Scope.values, created_by=admin)
    return FirstStart(api_key=text, admin_password=password)
