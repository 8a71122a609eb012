"""Prices, compared with figures that were calculated manually from the providers' tables."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from compaction.messages import Usage, usage_sum
from pricing import UNPRICED, calls_cost, context_window, price
from pricing.custom import CustomPrice, custom_cost, rates_at
from pricing.table import rates

USAGE = Usage(uncached_tokens=1_000, cache_read_tokens=10_000, cache_write_tokens=2_000, output_tokens=500)


@pytest.mark.parametrize(
    ("model", "microusd"),
    [
        # 1,000 x 5 + 10,000 x 0.50 + 2,000 x 6.25 + 500 x 25, by millions of tokens
        ("claude-opus-4-5-20251101", 35_000),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", 35_000),
        # 1,000 x 3 + 10,000 x 0.30 + 2,000 x 3.75 + 500 x 15
        ("claude-sonnet-4-5", 21_000),
        ("litellm_proxy/anthropic/claude-sonnet-4-5", 21_000),
        # 1,000 x 4 + 10,000 x 0.20 + 2,000 x 5 + 500 x 20
        ("claude-opus-5-5", 26_000),
        # 1,000 x 2 + 10,000 x 0.10 + 2,000 x 2.50 + 500 x 10
        ("gpt-6.1-sol", 13_000),
        # 1,000 x 0.10 + 10,000 x 0.01 + 2,000 x 0.125 + 500 x 0.50
        ("claude-haiku-5-5", 700),
    ],
)
def test_price(model: str, microusd: int) -> None:
    found = price(model, USAGE)
    assert found.microusd == microusd
    assert re.fullmatch(r"genai-prices [\d.]+ (anthropic|openai)/[\w.-]+", found.source)


def test_one_hour_cache_writes_cost_more() -> None:
    # 35,000 with 1,000 of the written tokens at 10 instead of 6.25
    assert price("claude-opus-4-5", USAGE, cache_write_1h_tokens=1_000).microusd == 38_750


def test_half_a_micro_dollar_is_rounded_up() -> None:
    # 5 read tokens at 0.10: 0.5
    assert price("gpt-6.1-sol", Usage(cache_read_tokens=5)).microusd == 1


def test_calls_are_priced_one_by_one() -> None:
    # 60,000 x 0.10 each; a prompt of 120,000 tokens would be taken at 0.50.
    calls = [Usage(uncached_tokens=60_000)] * 2
    assert calls_cost("claude-haiku-5-5", calls) == 12_000
    assert price("claude-haiku-5-5", usage_sum(calls)).microusd == 60_000
    assert calls_cost("claude-haiku-5-5", []) == 0
    assert calls_cost("my-own-model", calls) is None


def test_a_large_prompt_has_the_price_of_its_tier_at_the_time() -> None:
    before, after = datetime(2026, 3, 12, tzinfo=UTC), datetime(2026, 3, 14, tzinfo=UTC)
    limit, larger = Usage(uncached_tokens=200_000), Usage(uncached_tokens=200_001)
    # 5 up to 200,000 tokens, and 10 above until 2026-03-13
    assert price("claude-opus-4-6", limit, before).microusd == 1_000_000
    assert price("claude-opus-4-6", larger, before).microusd == 2_000_010
    assert price("claude-opus-4-6", larger, after).microusd == 1_000_005
    assert price("claude-opus-4-6", larger).microusd == 1_000_005
    assert [each.above for each in rates("claude-opus-4-6", before)] == [0, 200_000]
    assert [each.above for each in rates("claude-opus-4-6")] == [0]


def test_one_hour_cache_writes_of_several_calls_are_counted_once() -> None:
    calls = (Usage(cache_write_tokens=1_000),) * 3
    # Of 3,000 written tokens, 1,500 at 10 instead of 6.25.
    assert price("claude-opus-4-5", usage_sum(calls), cache_write_1h_tokens=1_500).microusd == 24_375
    made = Usage(cache_write_tokens=3_000, calls=calls)
    assert price("claude-opus-4-5", made, cache_write_1h_tokens=1_500).microusd == 24_375


@pytest.mark.parametrize("model", ["", "  ", "my-own-model", "anthropic/", "///"])
def test_an_unknown_model_is_unpriced(model: str) -> None:
    assert price(model, USAGE).microusd is None
    assert price(model, USAGE).source == UNPRICED
    assert context_window(model) is None


def test_context_window() -> None:
    assert context_window("claude-opus-4-5-20251101") == 200_000
    assert context_window("claude-opus-5-5") == 1_000_000
    for model in ("gemini-2.5-pro", "models/gemini-3-pro-preview", "gemini-pro-latest"):
        assert context_window(model) == 1_048_576


def test_claude_code_names_the_larger_window_of_a_model() -> None:
    name = "claude-sonnet-4-5[1m]"
    assert context_window(name) == 1_000_000
    assert context_window("claude-sonnet-4-5") == 200_000
    assert context_window("my-own-model[1m]") is None
    assert price(name, USAGE) == price("claude-sonnet-4-5", USAGE)


def custom(model: str = "our-model", *, first: int = 10, last: int | None = 20, **prices: int) -> CustomPrice:
    """Return a custom price for some days of March, in micro-dollars per million tokens."""
    rates = {"uncached": 3_000_000, "cache_read": 300_000, "cache_write": 4_000_000, "output": 15_000_000}
    days = {"first": date(2026, 3, first), "last": date(2026, 3, last) if last else None}
    return CustomPrice(model=model, **days, **(rates | prices))


def test_a_custom_price_applies_to_its_model_from_its_first_to_its_last_day() -> None:
    for model, day, applies in (
        ("our-model", 9, False),
        ("our-model", 10, True),
        (" Our-Model ", 20, True),
        ("our-model", 21, False),
        ("another", 15, False),
    ):
        found = custom_cost([custom("x"), custom()], model, USAGE, date(2026, 3, day))
        # 1,000 x 3 + 10,000 x 0.30 + 2,000 x 4 + 500 x 15
        assert found == (21_500 if applies else None), (model, day)
    assert custom_cost([custom(last=None)], "our-model", USAGE, date(2027, 3, 1)) == 21_500


def test_a_custom_price_is_rounded_half_up_and_survives_json() -> None:
    cheap = custom(uncached=499_999, output=500_000)
    assert cheap.cost(Usage(uncached_tokens=1)) == 0
    assert cheap.cost(Usage(output_tokens=1)) == 1
    for each in (cheap, custom(last=None)):
        assert CustomPrice.from_json(each.to_json()) == each


def test_the_rates_of_a_model_are_the_custom_ones_while_they_apply() -> None:
    prices = [custom("claude-sonnet-4-5"), custom()]
    before = rates_at(prices, "claude-sonnet-4-5", datetime(2026, 3, 9, 23, tzinfo=UTC))
    during = rates_at(prices, "claude-sonnet-4-5", datetime(2026, 3, 10, tzinfo=UTC))
    assert before is not None
    assert during is not None
    assert (before.above, during.above) == (0, 0)
    assert [before.cache_write * 1_000_000, before.cache_write_1h * 1_000_000] == [Decimal("3.75"), 6]
    assert [during.cache_write * 1_000_000, during.cache_write_1h * 1_000_000] == [4, 4]
    assert [during.uncached * 1_000_000, during.cache_read * 1_000_000] == [3, Decimal("0.3")]
    assert rates_at(prices, "my-own-model", datetime(2026, 3, 10, tzinfo=UTC)) is None
