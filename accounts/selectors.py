"""Reads: what a user or a key may see."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import QuerySet
from django.utils import timezone

from accounts.keys import key_split, secret_matches
from accounts.models import ApiKey, Project


def projects_of(user: User | AnonymousUser) -> QuerySet[Project]:
    """The projects that the user is a member of. Superusers are no exception: they join like everybody."""
    return Project.objects.filter(memberships__user=user.pk or 0).order_by("name")


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
