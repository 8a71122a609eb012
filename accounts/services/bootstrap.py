"""The first start: create the default project, its API key and the admin."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from accounts.actors import Actor
from accounts.models import Project, Scope
from accounts.services.api_keys import api_key_create
from accounts.services.projects import project_create


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStart:
    """The credentials created at the first start, to be shown once. None if they already existed."""

    api_key: str | None
    admin_password: str | None


@transaction.atomic
def bootstrap() -> FirstStart:
    """Create the default project with its key, and the admin who owns it. Safe to call at every start."""
    admin, password = User.objects.filter(username="admin").first(), None
    if admin is None and not User.objects.filter(is_superuser=True).exists():
        password = secrets.token_urlsafe(15)
        admin = User.objects.create_superuser("admin", password=password)
    project = Project.objects.filter(slug="default").first()
    if project is not None or Project.objects.exists():
        return FirstStart(api_key=None, admin_password=password)
    project = project_create(name="Default project", slug="default", owner=admin)
    _, text = api_key_create(project=project, name="default", scopes=Scope.values, actor=Actor(user=admin))
    return FirstStart(api_key=text, admin_password=password)
