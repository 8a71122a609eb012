"""Custom prices: prices of a project that differ from the public table.

They are stored on the project's row, so a push needs no additional query: it loads the project with its API
key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from compaction.messages import Usage
from pricing.table import Rates, rates

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomPrice:
    """The price of one model in micro-dollars per million tokens.

    It applies on the UTC days from `first` to `last`, inclusive; without `last` it does not expire.
    """

    model: str
    first: date
    last: date | None
    uncached: int
    cache_read: int
    cache_write: int
    output: int

    def applies_to(self, model: str, day: date) -> bool:
        """Return whether this price applies to a call of `model` on `day`."""
        within = self.first <= day and (self.last is None or day <= self.last)
        return within and self.model == model.strip().lower()

    def cost(self, usage: Usage) -> int:
        """Return the cost of a call in micro-dollars, rounded half up."""
        total = (
            self.uncached * usage.uncached_tokens
            + self.cache_read * usage.cache_read_tokens
            + self.cache_write * usage.cache_write_tokens
            + self.output * usage.output_tokens
        )
        return (total + _MILLION // 2) // _MILLION

    def rates(self) -> Rates:
        """Return the price in dollars per token."""
        kinds = (self.uncached, self.cache_read, self.cache_write, self.cache_write, self.output)
        return Rates(0, *(Decimal(kind) / _MILLION / _MILLION for kind in kinds))

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "first": str(self.first), "last": str(self.last) if self.last else None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CustomPrice:
        last = data["last"]
        days = {
            "first": date.fromisoformat(data["first"]),
            "last": date.fromisoformat(last) if last else None,
        }
        return cls(**{**data, **days})


def custom_cost(prices: Sequence[CustomPrice], model: str, usage: Usage, day: date) -> int | None:
    """Return the cost of a call in micro-dollars at the first price that applies, or None."""
    return next((price.cost(usage) for price in prices if price.applies_to(model, day)), None)


def rates_at(prices: Sequence[CustomPrice], model: str, at: datetime) -> Rates | None:
    """Return the first custom price that applies to a model at a time, else the public one of short prompts.

    None if the model has no price.
    """
    day = at.astimezone(UTC).date()
    custom = (price.rates() for price in prices if price.applies_to(model, day))
    return next(custom, None) or next(iter(rates(model, at)), None)
