"""The redaction of a project: its key, derived from the server's secret key, and its custom patterns."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

from django.conf import settings
from django.utils.crypto import salted_hmac

from accounts.models import Project
from redaction import ExtraPattern, Redaction


def redaction_of(project: Project) -> Redaction:
    """Return the redaction of a project. Runs no query."""
    patterns = tuple(ExtraPattern(**pattern) for pattern in project.redaction_patterns)
    return Redaction(key=redaction_key(project.pk), patterns=patterns)


def redaction_for(project_id: UUID) -> Redaction:
    """Return the redaction of a project by its id. One query."""
    return redaction_of(Project.objects.only("redaction_patterns").get(pk=project_id))


def redaction_key(project_id: object) -> bytes:
    """Return the key that hashes a project's secrets.

    It is derived from Django's SECRET_KEY: after that is rotated, a secret gets another placeholder.
    """
    return _derived(settings.SECRET_KEY, str(project_id))


@lru_cache(maxsize=1024)
def _derived(server_key: str, project_id: str) -> bytes:
    return salted_hmac("sessions.redaction", project_id, secret=server_key, algorithm="sha256").digest()
