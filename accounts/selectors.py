"""Reads: what a user or a key may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import QuerySet
from django.utils import timezone

from accounts.keys import key_split, secret_matches
from accounts.models import ApiKey, AuditEvent, Project


def projects_of(user: User | AnonymousUser) -> QuerySet[Project]:
    """The projects that the user is a member of. Superusers are no exception: they join like everybody."""
    return Project.objects.filter(memberships__user=user.pk or 0).order_by("name")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """A change of a project's default policy, by the names of what was and what came."""

    at: datetime
    before: str
    after: str


def policy_changes(*, project_id: UUID, since: datetime, until: datetime) -> list[PolicyChange]:
    """The changes from `since` until before `until`, in their order, at most the newest hundred."""
    events = AuditEvent.objects.filter(
        project=project_id,
        action="project.changed",
        at__gte=since,
        at__lt=until,
        detail__has_key="default_policy",
    )
    told = events.order_by("-at").values_list("at", "detail")[:100]
    return [
        PolicyChange(at=at, before=_policy_name(change["from"]), after=_policy_name(change["to"]))
        for at, detail in reversed(told)
        for change in [detail["default_policy"]]
    ]


def _policy_name(policy: Mapping[str, Any]) -> str:
    """The preset, with a sign that settings differ from it."""
    name = str(policy.get("preset") or policy.get("name") or "balanced")
    return f"{name}, changed" if policy.keys() - {"preset", "name"} and "preset" in policy else name


def api_key_find(text: str) -> ApiKey | None:
    """The live key that `text` is, or None. Compares in constant time."""
    if (parts := key_split(text)) is None:
        return None
    prefix, secret = parts
    key = ApiKey.objects.select_related("project").filter(prefix=prefix, revoked_at=None).first()
    if key is None or not secret_matches(secret, bytes(key.hash)):
        return None
    if key.expires_at is not None and key.expires_at <= timezone.now():
        return None
    return key
