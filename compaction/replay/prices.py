"""A price table: prices of a model's calls by the size of the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compaction.messages import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Dollars per million tokens for prompts of more than `above` tokens.

    For a provider that does not charge for cache writes, `cache_write` is the uncached price.
    """

    uncached: float
    cache_read: float
    cache_write: float
    cache_write_1h: float
    output: float
    above: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The tiers of one model, cheapest first, and their source."""

    tiers: tuple[Tier, ...]
    source: str = ""

    def of(self, usage: Usage, *, one_hour_cache: bool = False) -> float:
        """Return the micro-dollars of one call. `one_hour_cache`: cache writes last one hour."""
        if usage.calls:
            return sum(self.of(call, one_hour_cache=one_hour_cache) for call in usage.calls)
        tier = self._tier(usage.prompt_tokens)
        write = tier.cache_write_1h if one_hour_cache else tier.cache_write
        return (
            tier.uncached * usage.uncached_tokens
            + tier.cache_read * usage.cache_read_tokens
            + write * usage.cache_write_tokens
            + tier.output * usage.output_tokens
        )

    def _tier(self, prompt_tokens: int) -> Tier:
        return next((tier for tier in reversed(self.tiers) if prompt_tokens > tier.above), self.tiers[0])

    @classmethod
    def of_rates(cls, rates: Mapping[str, float], *, source: str = "") -> Prices:
        """Return a table of one tier from `input`, `read`, `write`, `write_1h` and `output`.

        Prices are dollars per million tokens. Cache reads and writes default to the input price. Raises
        ValueError for an unknown name, a negative price, or a missing input price.
        """
        if unknown := sorted(rates.keys() - {"input", "read", "write", "write_1h", "output"}):
            raise ValueError(f"unknown price: {', '.join(unknown)}")
        if "input" not in rates or min(rates.values()) < 0:
            raise ValueError("`input` is required, and prices must not be negative")
        given = rates["input"]
        write = rates.get("write", given)
        tier = Tier(
            uncached=given,
            cache_read=rates.get("read", given),
            cache_write=write,
            cache_write_1h=rates.get("write_1h", write),
            output=rates.get("output", 0.0),
        )
        return cls(tiers=(tier,), source=source)
