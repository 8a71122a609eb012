"""The custom prices of a project."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from accounts.models import Project
from pricing.custom import CustomPrice


def custom_prices(project: Project) -> tuple[CustomPrice, ...]:
    """Return the project's prices, newest first day first: of several valid prices, the first one applies."""
    prices = (CustomPrice.from_json(data) for data in project.custom_prices)
    return tuple(sorted(prices, key=lambda price: price.first, reverse=True))


def project_prices(ids: Collection[UUID]) -> Mapping[UUID, Sequence[CustomPrice]]:
    """Return the custom prices of those projects that have some. One query."""
    found = Project.objects.filter(pk__in=ids).exclude(custom_prices=[])
    return {project.pk: custom_prices(project) for project in found}
