"""Set and delete the custom prices of a project.

A price is identified by its model and its first day. Changes lock the project's row, so that concurrent
changes are all kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from django.db import transaction

from accounts.actors import Actor
from accounts.models import Project
from accounts.services.projects import project_update
from pricing.custom import CustomPrice
from sessions.selectors.custom_prices import custom_prices

#: Limit for one project, because every push reads all of its prices.
MAX_PRICES = 50


class TooManyPrices(Exception):
    """The project has reached the limit of custom prices."""


@transaction.atomic
def custom_price_set(*, project: Project, price: CustomPrice, actor: Actor) -> None:
    """Add a price, or replace the one with the same model and first day. Raises `TooManyPrices`."""
    locked = _locked(project)
    kept = _without(locked, price.model, price.first)
    if len(kept) >= MAX_PRICES:
        raise TooManyPrices
    _write(locked, [price, *kept], actor)


@transaction.atomic
def custom_price_delete(*, project: Project, model: str, first: date, actor: Actor) -> bool:
    """Delete a price. Returns False if there is none for this model and first day."""
    locked = _locked(project)
    kept = _without(locked, model, first)
    exists = len(kept) < len(custom_prices(locked))
    if exists:
        _write(locked, kept, actor)
    return exists


def _locked(project: Project) -> Project:
    return Project.objects.select_for_update(no_key=True).get(pk=project.pk)


def _without(project: Project, model: str, first: date) -> list[CustomPrice]:
    return [price for price in custom_prices(project) if (price.model, price.first) != (model, first)]


def _write(locked: Project, prices: Sequence[CustomPrice], actor: Actor) -> None:
    stored = [price.to_json() for price in prices]
    project_update(project=locked, changes={"custom_prices": stored}, actor=actor)
