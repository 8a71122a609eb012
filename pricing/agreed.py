"""Prices that a project has agreed on with its provider, where they differ from the public table.

They stand on the project's row, so that a push, which knows the project from its key, reads nothing for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from compaction.messages import Usage

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedPrice:
    """Micro-dollars a million tokens of one model, on the UTC days `first` to `last` (None: on and on)."""

    model: str
    first: date
    last: date | None
    uncached: int
    cache_read: int
    cache_write: int
    output: int

    def holds(self, model: str, day: date) -> bool:
        within = self.first <= day and (self.last is None or day <= self.last)
        return within and self.model == model.strip().lower()

    def of(self, usage: Usage) -> int:
        """What a call costs in micro-dollars, rounded half up."""
        total = (
            self.uncached * usage.uncached_tokens
            + self.cache_read * usage.cache_read_tokens
            + self.cache_write * usage.cache_write_tokens
            + self.output * usage.output_tokens
        )
        return (total + _MILLION // 2) // _MILLION

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "first": str(self.first), "last": str(self.last) if self.last else None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AgreedPrice:
        last = data["last"]
        days = {
            "first": date.fromisoformat(data["first"]),
            "last": date.fromisoformat(last) if last else None,
        }
        return cls(**{**data, **days})


def agreed_cost(prices: Sequence[AgreedPrice], model: str, usage: Usage, day: date) -> int | None:
    """What a call costs by the prices of the project; None where none of them holds."""
    return next((one.of(usage) for one in prices if one.holds(model, day)), None)
