"""Limits, price tables and the Pareto front."""

from dataclasses import dataclass

import pytest

from compaction.messages import Usage
from compaction.replay.pareto import front
from compaction.replay.prices import Prices, Tier
from compaction.replay.setting import Limit
from replay.selectors.price_tables import model_prices, named_prices
from tests.replay.builders import transcript


@dataclass(frozen=True)
class Choice:
    cost: float
    lost: float


def test_the_front_contains_the_pareto_optimal_choices() -> None:
    cheap, middle, safe = Choice(1, 9), Choice(2, 4), Choice(5, 0)
    assert front([safe, Choice(3, 4), middle, Choice(2, 5), cheap, Choice(6, 0)]) == [cheap, middle, safe]
    assert front([]) == []


def test_a_limit_is_a_share_or_a_number() -> None:
    session = transcript()
    assert Limit(ratio=1.0).budget(session) == session.peak
    assert Limit(ratio=0.01).budget(session) == 4_000
    assert Limit(tokens=9_000).budget(session) == 9_000
    assert Limit(ratio=0.5).label == "0.50"
    assert Limit(tokens=100_000).label == "100,000"
    for bad in ({}, {"ratio": 0.5, "tokens": 1}, {"tokens": 0}):
        with pytest.raises(ValueError):
            Limit(**bad)


def test_tiers_are_chosen_by_the_size_of_the_prompt() -> None:
    low = Tier(uncached=1, cache_read=0.1, cache_write=1.25, cache_write_1h=2, output=5)
    high = Tier(uncached=2, cache_read=0.2, cache_write=2.5, cache_write_1h=4, output=10, above=200_000)
    prices = Prices(tiers=(low, high))
    assert prices.of(Usage(uncached_tokens=200_000)) == 200_000
    assert prices.of(Usage(uncached_tokens=200_001)) == 400_002
    assert prices.of(Usage(cache_write_tokens=100), one_hour_cache=True) == 200


def test_a_price_table_is_a_model_or_rates() -> None:
    assert named_prices("input=3, read=0.3,write=3.75,output=15").of(Usage(cache_read_tokens=10)) == 3
    known = named_prices("claude-sonnet-4-5")
    assert known.tiers[0].uncached == pytest.approx(3)
    assert known.tiers[0].cache_read == pytest.approx(0.3)
    assert known.tiers[0].cache_write == pytest.approx(3.75)
    assert model_prices("nobody-knows-this") is None
    for bad in ("nobody-knows-this", "read=1", "input=1,colour=2", "input=-1", "input=x"):
        with pytest.raises(ValueError):
            named_prices(bad)
