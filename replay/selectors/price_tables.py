"""Price tables for replays: those of a model, or one given by the user."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

import pricing
from compaction.replay.prices import Prices, Tier
from compaction.replay.transcript import Transcript
from pricing.custom import CustomPrice

_MILLION = 1_000_000


def model_prices(model: str, at: datetime | None = None, custom: Sequence[CustomPrice] = ()) -> Prices | None:
    """Return the price table of a model at a time (default: now), or None if it has no price.

    The first custom price that applies has precedence over the public ones.
    """
    day = (at or datetime.now(UTC)).astimezone(UTC).date()
    own = next((price.rates() for price in custom if price.applies_to(model, day)), None)
    rates = (own,) if own is not None else pricing.rates(model, at)
    return _table(rates, f"custom price of {model}" if own else f"genai-prices {model}") if rates else None


@lru_cache(256)
def _table(rates: tuple[pricing.Rates, ...], source: str) -> Prices:
    tiers = tuple(
        Tier(
            above=each.above,
            uncached=float(each.uncached * _MILLION),
            cache_read=float(each.cache_read * _MILLION),
            cache_write=float(each.cache_write * _MILLION),
            cache_write_1h=float(each.cache_write_1h * _MILLION),
            output=float(each.output * _MILLION),
        )
        for each in rates
    )
    return Prices(tiers=tiers, source=source)


def transcript_prices(
    transcript: Transcript, custom: Sequence[CustomPrice] = ()
) -> tuple[Prices, ...] | None:
    """Return the prices of each call's model at its time, or None if the session has no price.

    A call whose model has no price has that of the session's model.
    """
    at = next((call.at for call in transcript.calls if call.at), None)
    found = []
    for call in transcript.calls:
        at = call.at or at
        prices = model_prices(call.model or transcript.model, at, custom)
        prices = prices or model_prices(transcript.model, at, custom)
        if prices is None:
            return None
        found.append(prices)
    return tuple(found)


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
