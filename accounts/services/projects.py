"""Create projects and change their settings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from accounts.actors import SYSTEM, Actor
from accounts.models import Membership, Project, Role
from accounts.services.audit import audit_record


class ProjectChanged(Exception):
    """Another user has changed the setting since it was read."""


@transaction.atomic
def project_create(*, name: str, slug: str, owner: User | None = None) -> Project:
    """Create a project, with `owner` as its first member if given."""
    project = Project.objects.create(name=name, slug=slug)
    if owner is not None:
        Membership.objects.create(project=project, user=owner, role=Role.OWNER)
    audit_record(action="project.created", project=project, actor=Actor(user=owner), target=slug)
    return project


@transaction.atomic
def project_update(
    *,
    project: Project,
    changes: Mapping[str, Any],
    actor: Actor = SYSTEM,
    only_unchanged: bool = False,
) -> None:
    """Set fields of the project. The audit log keeps the previous values.

    With `only_unchanged`, raises `ProjectChanged` if their stored values differ from those of `project`.
    """
    locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if only_unchanged and any(getattr(locked, name) != getattr(project, name) for name in changes):
        raise ProjectChanged
    detail = {
        name: {"from": _to_json(getattr(locked, name)), "to": _to_json(value)}
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
        actor=actor,
        target=locked.slug,
        detail=detail,
    )


def _to_json(value: Any) -> Any:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else value
