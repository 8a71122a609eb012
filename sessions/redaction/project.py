"""What a project's redaction needs: the key of its placeholders, and its own patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from django.apps import apps

from sessions.redaction.extra import ExtraPattern, extra_rules
from sessions.redaction.placeholders import redaction_key
from sessions.redaction.spans import Rule

if TYPE_CHECKING:  # processes that read logs for an import have no Django set up
    from accounts.models import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """What a project's secrets are found and replaced by. Values only: other processes take it too."""

    key: bytes
    patterns: tuple[ExtraPattern, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        return extra_rules(self.patterns)


def redaction_of(project: Project) -> Redaction:
    patterns = tuple(ExtraPattern(**pattern) for pattern in project.redaction_patterns)
    return Redaction(key=redaction_key(project.pk), patterns=patterns)


def redaction_for(project_id: UUID) -> Redaction:
    """The same where only the id is known. One query."""
    projects = apps.get_model("accounts", "Project").objects
    return redaction_of(projects.only("redaction_patterns").get(pk=project_id))
