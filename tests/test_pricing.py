"""Prices, compared with figures that were calculated manually from the providers' tables."""

from __future__ import annotations

import pytest

from compaction.messages import Usage, usage_sum
from pricing import UNPRICED, calls_cost, context_window, price

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
    assert price(model, USAGE).microusd == microusd


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


@pytest.mark.parametrize("model", ["", "  ", "my-own-model", "anthropic/", "///"])
def test_an_unknown_model_is_unpriced(model: str) -> None:
    assert price(model, USAGE).microusd is None
    assert price(model, USAGE).source == UNPRICED
    assert context_window(model) is None


def test_context_window() -> None:
    assert context_window("claude-opus-4-5-20251101") == 200_000
    assert context_window("claude-opus-5-5") == 1_000_000


def test_claude_code_names_the_larger_window_of_a_model() -> None:
    name = "claude-sonnet-4-5[1m]"
    assert context_window(name) == 1_000_000
    assert context_window("claude-sonnet-4-5") == 200_000
    assert price(name, USAGE) == price("claude-sonnet-4-5", USAGE)
