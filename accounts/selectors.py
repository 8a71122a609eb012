"""Queries for projects, API keys, provider keys and changes of settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from cryptography.fernet import InvalidToken
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.encryption import cipher
from accounts.keys import key_split, secret_matches
from accounts.models import PROVIDER_SECRETS, ApiKey, AuditEvent, Project, Scope

#: The SQL condition that the API key `k` is valid.
KEY_IS_VALID: LiteralString = "k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())"
#: The SQL condition that the parameter `key` is NULL or the id of a valid API key.
GIVEN_KEY_IS_VALID: LiteralString = f"""
(%(key)s::uuid IS NULL OR EXISTS (SELECT FROM accounts_apikey k WHERE k.id = %(key)s AND {KEY_IS_VALID}))
"""


def projects_of(user: User | AnonymousUser) -> QuerySet[Project]:
    """Return the projects that the user is a member of. Superusers need a membership too."""
    return Project.objects.filter(memberships__user=user.pk or 0).order_by("name")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """A change of a project's default policy, with the names of both policies."""

    at: datetime
    before: str
    after: str


def policy_changes(*, project_id: UUID, since: datetime, until: datetime) -> list[PolicyChange]:
    """Return the changes in [since, until) from old to new, but at most the newest hundred."""
    events = AuditEvent.objects.filter(
        project=project_id,
        action="project.changed",
        at__gte=since,
        at__lt=until,
        detail__has_key="default_policy",
    )
    newest = events.order_by("-at").values_list("at", "detail")[:100]
    return [
        PolicyChange(at=at, before=_policy_name(change["from"]), after=_policy_name(change["to"]))
        for at, detail in reversed(newest)
        for change in [detail["default_policy"]]
    ]


def _policy_name(policy: Mapping[str, Any]) -> str:
    """Return the name of the preset, marked if some of its settings are changed."""
    name = str(policy.get("preset") or policy.get("name") or "balanced")
    return f"{name}, changed" if policy.keys() - {"preset", "name"} and "preset" in policy else name


def api_key_find(text: str) -> ApiKey | None:
    """Return the API key with this text, or None if it does not exist or is revoked or expired."""
    if (parts := key_split(text)) is None:
        return None
    prefix, secret = parts
    key = ApiKey.objects.select_related("project").filter(prefix=prefix, revoked_at=None).first()
    if key is None or not secret_matches(secret, bytes(key.hash)):
        return None
    if key.expires_at is not None and key.expires_at <= timezone.now():
        return None
    return key


def api_keys_valid(scope: Scope) -> list[ApiKey]:
    """Return all valid API keys with a scope, of all projects."""
    return list(_valid_keys().filter(scopes__contains=[scope]).prefetch_related("project"))


def api_keys_of_member(*, project: Project, created_by: User) -> QuerySet[ApiKey]:
    """Return the project's keys that this user created and that are valid."""
    return _valid_keys().filter(project=project, created_by=created_by)


def _valid_keys() -> QuerySet[ApiKey]:
    is_current = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    return ApiKey.objects.filter(is_current, revoked_at=None)


def provider_secrets(project: Project) -> dict[str, str]:
    """Return the provider keys of a project, without those that the server's secret key cannot read."""
    found = {}
    for provider, value in project.provider_secrets.items():
        try:
            found[provider] = cipher(PROVIDER_SECRETS).decrypt(value.encode()).decode()
        except InvalidToken:
            continue
    return found
