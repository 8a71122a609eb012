"""Agreed prices of a project, written under its row's lock: two owners at once lose none of them.

A price is known by its model and its first day.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from django.db import transaction

from accounts.actors import Actor
from accounts.models import Project
from accounts.services import project_update
from pricing.custom import CustomPrice
from sessions.selectors.custom_prices import custom_prices

#: Prices that a project has at most: each push reads them all.
MOST = 50


class TooManyPrices(Exception):
    """The project has as many prices as it may have."""


@transaction.atomic
def price_set(*, project: Project, price: CustomPrice, actor: Actor) -> None:
    """Adds a price, in the place of one of the same model from the same day on. Raises `TooManyPrices`."""
    locked = _locked(project)
    kept = _without(locked, price.model, price.first)
    if len(kept) >= MOST:
        raise TooManyPrices
    _write(locked, [price, *kept], actor)


@transaction.atomic
def price_remove(*, project: Project, model: str, first: date, actor: Actor) -> bool:
    """Takes a price away. False where there is none of this model from this day on."""
    locked = _locked(project)
    kept = _without(locked, model, first)
    is_there = len(kept) < len(custom_prices(locked))
    if is_there:
        _write(locked, kept, actor)
    return is_there


def _locked(project: Project) -> Project:
    return Project.objects.select_for_update().get(pk=project.pk)


def _without(project: Project, model: str, first: date) -> list[CustomPrice]:
    return [one for one in custom_prices(project) if (one.model, one.first) != (model, first)]


def _write(locked: Project, prices: Sequence[CustomPrice], actor: Actor) -> None:
    told = [one.to_json() for one in prices]
    project_update(project=locked, changes={"custom_prices": told}, actor=actor)
