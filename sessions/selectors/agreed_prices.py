"""The custom prices of a project."""

from __future__ import annotations

from accounts.models import Project
from pricing.agreed import AgreedPrice


def agreed_prices(project: Project) -> tuple[AgreedPrice, ...]:
    """The newest beginning first: where several hold, that one does."""
    found = (AgreedPrice.from_json(data) for data in project.agreed_prices)
    return tuple(sorted(found, key=lambda one: one.first, reverse=True))
