"""The sample data of a project."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from accounts.models import Project
from sessions.models import SampleLoad


def sample_of(project: Project) -> SampleLoad | None:
    """Return the job of a project's sample data, which may still be loading, or None."""
    return SampleLoad.objects.filter(pk=project.pk).first()


def has_sample(projects: Collection[UUID]) -> bool:
    """Return whether one of the projects contains sample data."""
    return SampleLoad.objects.filter(pk__in=projects).exclude(sessions=[]).exists()


def sample_sessions(project_id: UUID) -> Collection[UUID]:
    """Return the ids of a project's sample sessions."""
    return SampleLoad.objects.filter(pk=project_id).values_list("sessions", flat=True).first() or ()
