"""The custom prices of a project."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from django.db.models import Sum
from django.utils import timezone

from accounts.models import Project
from pricing.custom import CustomPrice, rates_at
from sessions.models import UsageRollup

#: The period in which unpriced models are counted, in days.
UNPRICED_DAYS = 30


def custom_prices(project: Project) -> tuple[CustomPrice, ...]:
    """Return the project's prices, newest first day first: of several valid prices, the first one applies."""
    prices = (CustomPrice.from_json(data) for data in project.custom_prices)
    return tuple(sorted(prices, key=lambda price: price.first, reverse=True))


def project_prices(ids: Collection[UUID]) -> Mapping[UUID, Sequence[CustomPrice]]:
    """Return the custom prices of those projects that have some. One query."""
    found = Project.objects.filter(pk__in=ids).exclude(custom_prices=[])
    return {project.pk: custom_prices(project) for project in found}


def models_unpriced(project: Project) -> list[tuple[str, int]]:
    """Return the models without a price, and the number of their recent unpriced calls, most calls first."""
    now, prices = timezone.now(), custom_prices(project)
    since = now - timedelta(days=UNPRICED_DAYS)
    rows = UsageRollup.objects.filter(project=project, at__gte=since, unpriced_turns__gt=0)
    by_model = rows.values_list("model").annotate(calls=Sum("unpriced_turns"))
    found = by_model.order_by("-calls", "model")
    return [(model, calls) for model, calls in found if rates_at(prices, model, now) is None]
