"""Price tables for replay: a model's own, or one that somebody names."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

import pricing
from compaction.replay import Prices, Tier

_MILLION = 1_000_000


@lru_cache(256)
def model_prices(model: str, at: datetime | None = None) -> Prices | None:
    """The model's table at the time `at` (None: today); None where it has no price."""
    tiers = tuple(
        Tier(
            above=rates.above,
            uncached=float(rates.uncached * _MILLION),
            cache_read=float(rates.cache_read * _MILLION),
            cache_write=float(rates.cache_write * _MILLION),
            cache_write_1h=float(rates.cache_write_1h * _MILLION),
            output=float(rates.output * _MILLION),
        )
        for rates in pricing.rates(model, at)
    )
    return Prices(tiers=tiers, source=f"genai-prices {model}") if tiers else None


def named_prices(text: str) -> Prices:
    """The table that `text` names: a model, or `input=3,read=0.3,write=3.75,output=15` in dollars per million
    tokens. Raises ValueError."""
    if "=" in text:
        pairs = (pair.partition("=") for pair in text.split(","))
        return Prices.of_rates({name.strip(): float(value) for name, _, value in pairs}, source=text)
    prices = model_prices(text)
    if prices is None:
        raise ValueError(f"no price is known for the model {text!r}")
    return prices
