"""The effects on the change of the cost between two periods."""

from __future__ import annotations

from dataclasses import asdict, replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.cost_change import CostChange, ModelUsage, PeriodUsage, cost_change

RATES = (Decimal(3), Decimal("0.3"), Decimal("3.75"), Decimal(15))
NONE = CostChange(calls=0, input_per_call=0, caching=0, output_per_call=0, prices=0, without_tokens=0)

COUNTS = st.integers(0, 10**12) | st.integers(0, 3)
RATE = st.decimals(0, 1_000, places=4)
MODELS = st.builds(
    ModelUsage,
    uncached=COUNTS,
    cache_read=COUNTS,
    cache_write=COUNTS,
    output=COUNTS,
    cost_microusd=COUNTS,
    rates=st.none() | st.tuples(RATE, RATE, RATE, RATE),
)
PERIODS = st.builds(PeriodUsage, calls=st.integers(1, 10**9), models=st.lists(MODELS, max_size=4)) | st.just(
    PeriodUsage(calls=0)
)


def period(
    calls: int,
    *,
    uncached: int = 200,
    read: int = 700,
    written: int = 100,
    output: int = 50,
    price: int = 1,
) -> PeriodUsage:
    """Return calls with this many thousands of tokens each, at multiples of the price of Sonnet."""
    tokens = [1_000 * calls * count for count in (uncached, read, written, output)]
    cost = sum(rate * count for rate, count in zip(RATES, tokens, strict=True)) * price
    model = ModelUsage(
        uncached=tokens[0],
        cache_read=tokens[1],
        cache_write=tokens[2],
        output=tokens[3],
        cost_microusd=int(cost),
        rates=RATES,
    )
    return PeriodUsage(calls=calls, models=[model])


BEFORE = period(10)


@given(PERIODS, PERIODS)
def test_the_effects_add_up(before, after):
    assert cost_change(before, after).total == after.cost_microusd - before.cost_microusd


@given(PERIODS)
def test_equal_periods_have_no_effects(usage):
    assert cost_change(usage, usage) == NONE


@given(PERIODS, PERIODS)
def test_swapped_periods_have_opposite_effects(before, after):
    there, back = (asdict(cost_change(*pair)) for pair in ((before, after), (after, before)))
    # Rounding may differ by a micro-dollar per factor.
    assert all(abs(there[name] + back[name]) <= 5 for name in there)


@given(PERIODS, st.integers(2, 1_000))
def test_only_more_calls_are_an_effect_of_calls(before, times):
    models = [
        ModelUsage(
            **{name: value * times for name, value in asdict(model).items() if name != "rates"},
            rates=model.rates,
        )
        for model in before.models
        if any(model.tokens)
    ]
    before = replace(before, models=[model for model in before.models if any(model.tokens)])
    after = PeriodUsage(calls=before.calls * times, models=models)
    assert cost_change(before, after) == replace(NONE, calls=after.cost_microusd - before.cost_microusd)


@given(PERIODS)
def test_without_calls_the_cost_is_an_effect_of_calls(usage):
    expected = replace(
        NONE,
        calls=usage.cost_microusd - usage.cost_without_tokens,
        without_tokens=usage.cost_without_tokens,
    )
    assert cost_change(PeriodUsage(calls=0), usage) == expected


@pytest.mark.parametrize(
    ("after", "name"),
    [
        (period(15), "calls"),
        (period(10, uncached=400, read=1_400, written=200), "input_per_call"),
        (period(10, uncached=100, read=800), "caching"),
        (period(10, uncached=300, read=600), "caching"),
        (period(10, output=80), "output_per_call"),
        (period(10, price=2), "prices"),
    ],
)
def test_a_single_cause_has_the_whole_effect(after, name):
    change = after.cost_microusd - BEFORE.cost_microusd
    assert change
    assert cost_change(BEFORE, after) == replace(NONE, **{name: change})


def test_combined_effects_are_shared_equally():
    def usage(calls: int, dollars: int) -> PeriodUsage:
        model = replace(BEFORE.models[0], cost_microusd=dollars * 1_000_000)
        tokens = dict.fromkeys(("uncached", "cache_read", "cache_write", "output"), calls * 100)
        return PeriodUsage(calls=calls, models=[replace(model, **tokens)])

    # 10 more calls cost $10 at the old price, 10 calls $20 more at the new one; both together, $20 more.
    before, after = usage(10, 10), usage(20, 60)
    assert cost_change(before, after) == replace(NONE, calls=20_000_000, prices=30_000_000)


def test_another_mix_of_models_is_an_effect_of_prices():
    cheap, expensive = period(10).models[0], period(10, price=5).models[0]
    before = PeriodUsage(calls=20, models=[cheap, cheap])
    after = PeriodUsage(calls=20, models=[cheap, expensive])
    change = after.cost_microusd - before.cost_microusd
    assert cost_change(before, after) == replace(NONE, prices=change)


def test_the_first_cache_hits_are_not_an_effect_of_prices():
    before, after = period(10, uncached=1_000, read=0, written=0), period(10)
    saved = after.cost_microusd - before.cost_microusd
    assert saved < 0
    assert cost_change(before, after) == replace(NONE, caching=saved)


def test_models_without_known_prices_are_divided_by_typical_ones():
    def usage(uncached: int, read: int) -> PeriodUsage:
        cost = uncached + read // 10
        model = ModelUsage(
            uncached=uncached, cache_read=read, cache_write=0, output=0, cost_microusd=cost, rates=None
        )
        return PeriodUsage(calls=1, models=[model])

    assert cost_change(usage(1_000, 0), usage(0, 1_000)) == replace(NONE, caching=-900)


def test_costs_without_tokens_are_separate():
    reported = ModelUsage(uncached=0, cache_read=0, cache_write=0, output=0, cost_microusd=7)
    after = replace(BEFORE, models=[*BEFORE.models, reported])
    assert cost_change(BEFORE, after) == replace(NONE, without_tokens=7)
    more = replace(BEFORE, models=[*BEFORE.models, reported, reported, reported])
    assert cost_change(after, more) == replace(NONE, without_tokens=14)


def test_tokens_need_calls():
    with pytest.raises(ValueError, match="at least one call"):
        replace(BEFORE, calls=0)
    model = ModelUsage(uncached=1, cache_read=0, cache_write=0, output=0, cost_microusd=1)
    with pytest.raises(ValueError, match="at least one call"):
        PeriodUsage(calls=0, models=[model])


def test_rounded_effects_add_up_with_the_smallest_errors():
    def usage(calls: int, input_per_call: int, price: int) -> PeriodUsage:
        tokens = calls * input_per_call
        model = ModelUsage(
            uncached=tokens, cache_read=0, cache_write=0, output=0, cost_microusd=tokens * price
        )
        return PeriodUsage(calls=calls, models=[model])

    # Each effect is 7/3.
    change = cost_change(usage(1, 1, 1), usage(2, 2, 2))
    assert sorted([change.calls, change.input_per_call, change.prices]) == [2, 2, 3]
    change = cost_change(usage(2, 2, 2), usage(1, 1, 1))
    assert sorted([change.calls, change.input_per_call, change.prices]) == [-3, -2, -2]
    # 11.5, 19.5 and 24
    change = cost_change(usage(1, 1, 1), usage(2, 4, 7))
    assert (change.prices, change.calls + change.input_per_call) == (24, 31)
    change = cost_change(usage(1, 1, 1), usage(7, 4, 2))
    assert (change.calls, change.prices + change.input_per_call) == (24, 31)
