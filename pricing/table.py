"""What a model call cost, by the price table of `genai-prices`: offline, dated, in micro-dollars.

A model that the table does not know is *unpriced*: None, never zero and never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from importlib.metadata import version

import genai_prices
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider, TieredPrices

from compaction.messages import Usage

UNPRICED = "unpriced"

#: Amazon Bedrock's way to write a model: "eu.anthropic.claude-…-v2:0".
_BEDROCK = re.compile(r"^(?:[a-z]{2,6}\.)?[a-z]+\.(?=[a-z])|-v\d+(?::\d+)*$")
_DATE = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2})$")


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one call in micro-dollars, None where there is none, and where the figure is from."""

    microusd: int | None
    source: str


def price(model: str, usage: Usage, at: datetime | None = None, *, cache_write_1h_tokens: int = 0) -> Price:
    """What the call cost at the time `at` (None: at today's prices), rounded half up.

    `cache_write_1h_tokens` is the part of `usage.cache_write_tokens` that was written for an hour.
    """
    found = _find(model)
    if found is None:
        return Price(None, UNPRICED)
    provider, info = found
    source = f"{_table()} {provider.id}/{info.id}"
    minute = (at or datetime.now(UTC)).replace(second=0, microsecond=0)
    tier = max((start for start in _tiers(model, minute) if usage.prompt_tokens > start), default=-1)
    return Price(_microusd(_rates(model, minute, tier).of(usage, cache_write_1h_tokens)), source)


def calls_cost(model: str, calls: Iterable[Usage]) -> int | None:
    """What calls that belong together cost today in micro-dollars, None where the model has no price. Each is
    priced by itself: together they may be above a size from which prompts are dearer."""
    costs = [price(model, usage).microusd for usage in calls]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars a token, for prompts of more than `above` tokens."""

    above: int
    uncached: Decimal
    cache_read: Decimal
    cache_write: Decimal
    cache_write_1h: Decimal
    output: Decimal

    def of(self, usage: Usage, cache_write_1h_tokens: int) -> Decimal:
        """Dollars of one call."""
        for_an_hour = min(cache_write_1h_tokens, usage.cache_write_tokens)
        return (
            self.uncached * usage.uncached_tokens
            + self.cache_read * usage.cache_read_tokens
            + self.cache_write * (usage.cache_write_tokens - for_an_hour)
            + self.cache_write_1h * for_an_hour
            + self.output * usage.output_tokens
        )


@lru_cache(maxsize=1024)
def _tiers(model: str, at: datetime) -> tuple[int, ...]:
    """Prompt sizes (tokens) above which the model has other prices."""
    found = _find(model)
    assert found is not None
    prices = vars(found[1].get_prices(at)).values()
    return tuple({tier.start for price in prices if isinstance(price, TieredPrices) for tier in price.tiers})


@lru_cache(maxsize=1024)
def _rates(model: str, at: datetime, tier: int) -> Rates:
    """The rates of a model in one minute, for prompts of more than `tier` tokens.

    A look-up in the table takes longer than all else that a push computes, so it is made once a minute and
    not once a call: the price may depend on the time of the day.
    """
    found = _find(model)
    assert found is not None
    provider, info = found
    floor, step = tier + 1, 1_000

    def total(*, prompt: int = 0, **tokens: int) -> Decimal:
        usage = genai_prices.Usage(input_tokens=floor + prompt, **tokens)
        return genai_prices.calc_price(
            usage, info.id, provider_id=provider.id, genai_request_timestamp=at
        ).total_price

    def rate(**tokens: int) -> Decimal:
        return (total(**tokens) - total()) / step

    return Rates(
        above=max(tier, 0),
        uncached=rate(prompt=step),
        cache_read=rate(prompt=step, cache_read_tokens=step),
        cache_write=rate(prompt=step, cache_write_tokens=step),
        cache_write_1h=rate(prompt=step, cache_write_tokens=step, cache_write_1h_tokens=step),
        output=rate(output_tokens=step),
    )


def rates(model: str, at: datetime | None = None) -> tuple[Rates, ...]:
    """The model's whole table at the time `at` (None: today), smallest prompts first; empty without one."""
    if _find(model) is None:
        return ()
    minute = (at or datetime.now(UTC)).replace(second=0, microsecond=0)
    return tuple(_rates(model, minute, tier) for tier in (-1, *sorted(_tiers(model, minute))))


def context_window(model: str) -> int | None:
    """The model's context window in tokens, None where the table does not have it."""
    found = _find(model)
    return found[1].context_window if found else None


@lru_cache(maxsize=4096)
def _find(model: str) -> tuple[Provider, ModelInfo] | None:
    for name in _spellings(model.strip().lower()):
        try:
            return get_snapshot().find_provider_model(name, None, None, None)
        except LookupError:
            continue
    return None


def _spellings(model: str) -> Iterator[str]:
    """The name as it is, without a gateway's prefix, without Bedrock's additions, without its date."""
    if not model:
        return
    yield model
    bare = model.rsplit("/", 1)[-1]
    yield bare
    plain = _BEDROCK.sub("", bare)
    yield plain
    yield _DATE.sub("", plain)


@lru_cache(maxsize=1)
def _table() -> str:
    return f"genai-prices {version('genai-prices')}"


def _microusd(dollars: Decimal) -> int:
    return int((dollars * 1_000_000).quantize(Decimal(1), rounding=ROUND_HALF_UP))
