"""The author of a change, for the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A user or an API key. Without either, contextapp itself makes the change."""

    user: User | None = None
    api_key_id: UUID | None = None


SYSTEM = Actor()
