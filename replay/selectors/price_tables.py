"""Price tables for replays: those of a model, or one given by the user."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

import pricing
from compaction.replay.prices import Prices, Tier
from compaction.replay.transcript import Transcript

_MILLION = 1_000_000


@lru_cache(256)
def model_prices(model: str, at: datetime | None = None) -> Prices | None:
    """Return the price table of a model at a time (default: now), or None if it has no price."""
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


def transcript_prices(transcript: Transcript) -> Prices | None:
    """Return the prices of the session's model at its first call, or None if it has no price."""
    at = next((call.at for call in transcript.calls if call.at), None)
    return model_prices(transcript.model, at)


def named_prices(text: str) -> Prices:
    """Return the price table for a model name or for rates like `input=3,read=0.3,write=3.75,output=15`.

    Rates are in dollars per million tokens. Raises ValueError.
    """
    if "=" in text:
        pairs = (pair.partition("=") for pair in text.split(","))
        return Prices.of_rates({name.strip(): float(value) for name, _, value in pairs}, source=text)
    prices = model_prices(text)
    if prices is None:
        raise ValueError(f"no known price for the model {text!r}")
    return prices
