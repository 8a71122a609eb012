"""The cost of model calls according to the price table of `genai-prices`: offline, by date, in micro-dollars.

A model that is not in the table is *unpriced*: its cost is None, never zero and never an exception.
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
from genai_prices.types import ModelInfo, ModelPrice, Provider, TieredPrices

from compaction.messages import Usage

UNPRICED = "unpriced"

#: The parts that Amazon Bedrock adds to a model name, as in "eu.anthropic.claude-…-v2:0".
_BEDROCK = re.compile(r"^(?:[a-z]{2,6}\.)?[a-z]+\.(?=[a-z])|-v\d+(?::\d+)*$")
#: How Claude Code names a model whose larger context window is enabled, as in "claude-sonnet-4-5[1m]".
_LARGE_WINDOW = "[1m]"
#: Windows that the table lacks. Source: https://ai.google.dev/gemini-api/docs/models
_WINDOWS = dict.fromkeys(("gemini-2.5-pro", "gemini-3-pro-preview", "gemini-3.1-pro-preview"), 1_048_576)
_DATE = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2})$")


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one call in micro-dollars, or None if it is unpriced, and the source of the price."""

    microusd: int | None
    source: str


def price(model: str, usage: Usage, at: datetime | None = None, *, cache_write_1h_tokens: int = 0) -> Price:
    """Return the price of a response at the time `at` (default: now), rounded half up.

    If the provider made several calls for it, each is priced according to the size of its prompt.

    `cache_write_1h_tokens` is the part of `usage.cache_write_tokens` with a TTL of one hour.
    """
    found = _find(model)
    if found is None:
        return Price(None, UNPRICED)
    provider, info = found
    source = f"{_table()} {provider.id}/{info.id}"
    prices = _prices_at(info, at or datetime.now(UTC))
    dollars, one_hour_tokens = Decimal(0), cache_write_1h_tokens
    for call in usage.calls or (usage,):
        tier = max((start for start in _tiers(prices) if call.prompt_tokens > start), default=-1)
        dollars += _rates(prices, tier).of(call, one_hour_tokens)
        one_hour_tokens = max(0, one_hour_tokens - call.cache_write_tokens)
    return Price(_microusd(dollars), source)


def calls_cost(model: str, calls: Iterable[Usage]) -> int | None:
    """Return the total cost of calls at today's prices in micro-dollars, or None without a price.

    Each call is priced separately, because prices may be higher above a certain prompt size.
    """
    costs = [price(model, usage).microusd for usage in calls]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars per token, for prompts of more than `above` tokens."""

    above: int
    uncached: Decimal
    cache_read: Decimal
    cache_write: Decimal
    cache_write_1h: Decimal
    output: Decimal

    def of(self, usage: Usage, cache_write_1h_tokens: int) -> Decimal:
        """Return the cost of one call in dollars."""
        one_hour_tokens = min(cache_write_1h_tokens, usage.cache_write_tokens)
        return (
            self.uncached * usage.uncached_tokens
            + self.cache_read * usage.cache_read_tokens
            + self.cache_write * (usage.cache_write_tokens - one_hour_tokens)
            + self.cache_write_1h * one_hour_tokens
            + self.output * usage.output_tokens
        )


class _Prices:
    """Prices as a cache key, because the table's class is not hashable. The table never changes."""

    def __init__(self, table: ModelPrice) -> None:
        self.table = table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Prices) and other.table is self.table

    def __hash__(self) -> int:
        return id(self.table)


def _prices_at(info: ModelInfo, at: datetime) -> _Prices:
    """Return the prices in force, which may depend on the date and the time of day."""
    return _Prices(info.get_prices(at))


@lru_cache(maxsize=1024)
def _tiers(prices: _Prices) -> tuple[int, ...]:
    """Return the prompt sizes in tokens above which prices differ."""
    values = vars(prices.table).values()
    return tuple({tier.start for price in values if isinstance(price, TieredPrices) for tier in price.tiers})


@lru_cache(maxsize=1024)
def _rates(prices: _Prices, tier: int) -> Rates:
    """Return the rates for prompts of more than `tier` tokens.

    The result is cached, because a lookup takes longer than all other computations of a push.
    """
    floor, step = tier + 1, 1_000

    def total(*, prompt: int = 0, **tokens: int) -> Decimal:
        return prices.table.calc_price(genai_prices.Usage(input_tokens=floor + prompt, **tokens))[
            "total_price"
        ]

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
    """Return the model's rates at the time `at` (default: now), smallest prompts first."""
    found = _find(model)
    if found is None:
        return ()
    prices = _prices_at(found[1], at or datetime.now(UTC))
    return tuple(_rates(prices, tier) for tier in (-1, *sorted(_tiers(prices))))


def context_window(model: str) -> int | None:
    """Return the model's context window in tokens, or None if it is unknown."""
    found = _find(model)
    if found and model.rstrip().endswith(_LARGE_WINDOW):
        return 1_000_000
    return found[1].context_window or _WINDOWS.get(found[1].id) if found else None


@lru_cache(maxsize=4096)
def _find(model: str) -> tuple[Provider, ModelInfo] | None:
    for name in _spellings(model.strip().lower()):
        try:
            return get_snapshot().find_provider_model(name, None, None, None)
        except LookupError:
            continue
    return None


def _spellings(model: str) -> Iterator[str]:
    """Yield the name unchanged, and without a gateway's prefix, Bedrock's additions and a date."""
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
