"""The custom prices of a project."""

from __future__ import annotations

from accounts.models import Project
from pricing.custom import CustomPrice


def custom_prices(project: Project) -> tuple[CustomPrice, ...]:
    """The newest beginning first: where several hold, that one does."""
    found = (CustomPrice.from_json(data) for data in project.custom_prices)
    return tuple(sorted(found, key=lambda one: one.first, reverse=True))
