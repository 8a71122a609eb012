"""The custom prices of a project."""

from __future__ import annotations

from accounts.models import Project
from pricing.custom import CustomPrice


def custom_prices(project: Project) -> tuple[CustomPrice, ...]:
    """Return the project's prices, newest first day first: of several valid prices, the first one applies."""
    prices = (CustomPrice.from_json(data) for data in project.custom_prices)
    return tuple(sorted(prices, key=lambda price: price.first, reverse=True))
