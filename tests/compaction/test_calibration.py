"""Calibration: learn the provider's tokens from reported prompt sizes."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from compaction.sizes.calibration import Calibration, calibration_learned


def learned(reports: Iterable[tuple[int, int]], start: Calibration | None = None) -> Calibration:
    calibration = start or Calibration()
    for estimated, reported in reports:
        calibration = calibration.updated(sizes=[estimated], reported=reported)
    return calibration


def reports(factor: float, overhead: int, *, turns: int = 20) -> list[tuple[int, int]]:
    """A prompt that grows, is compacted and grows again."""
    sizes = [2_000 + 3_000 * (turn % 8) for turn in range(turns)]
    return [(size, round(factor * size + overhead)) for size in sizes]


PROVIDERS = [(1.0, 0), (1.25, 12_000), (0.8, 0), (1.2, 40_000), (2.0, 500)]


@pytest.mark.parametrize(("factor", "overhead"), PROVIDERS)
@pytest.mark.parametrize("initial", [1.0, 1.25])
def test_factor_and_overhead_are_found(factor: float, overhead: int, initial: float) -> None:
    calibration = learned(reports(factor, overhead), Calibration(initial=initial))
    assert calibration.factor == pytest.approx(factor, rel=0.03)
    assert calibration.overhead == pytest.approx(overhead, abs=500)
    for size in (3_000, 20_000, 40_000):
        assert calibration.provider(size) == pytest.approx(factor * size + overhead, rel=0.02)


def test_the_first_report_gives_the_overhead() -> None:
    calibration = learned([(1_000, 41_250)], Calibration(initial=1.25))
    assert (calibration.factor, calibration.overhead, calibration.reports) == (1.25, 40_000, 1)


def test_a_provider_that_counts_less_lowers_the_factor_at_once() -> None:
    assert learned([(10_000, 8_000)], Calibration(initial=1.25)).provider(20_000) == 16_000


def test_noise_averages_out() -> None:
    noise = Random(1)
    noisy = [
        (size, round(count * noise.uniform(0.97, 1.03))) for size, count in reports(1.25, 12_000, turns=60)
    ]
    assert learned(noisy).factor == pytest.approx(1.25, rel=0.1)


@pytest.mark.parametrize("odd", [300, 4_000, 90_000, 400_000])
@pytest.mark.parametrize("estimated", [50, 12_000])
def test_a_single_odd_report_changes_nothing(odd: int, estimated: int) -> None:
    before = learned(reports(1.25, 12_000))
    after = before.updated(sizes=[estimated], reported=odd)
    assert (after.factor, after.overhead) == (before.factor, before.overhead)
    again = after.updated(sizes=[9_000], reported=23_250)
    assert again.provider(9_000) == 23_250
    assert again.doubt is None


def test_a_second_report_confirms_an_odd_one() -> None:
    """The agent has added tools that it does not push."""
    before = learned(reports(1.25, 2_000))
    after = learned([(10_000, 34_500), (11_000, 35_750)], before)
    assert after.provider(12_000) == pytest.approx(37_000, rel=0.01)


def test_early_reports_of_another_prompt_are_set_aside() -> None:
    assert learned([(20_000, 300)]).reports == 0


def test_reports_of_an_agent_that_ignores_the_served_prompt_belong_to_its_transcript() -> None:
    calibration = learned(reports(1.0, 0))
    for size in range(40_000, 80_000, 4_000):
        calibration = calibration.updated(sizes=[10_000, size], reported=size)
    assert calibration.provider(10_000) == pytest.approx(10_000, rel=0.02)


def test_without_reports_nothing_is_learned() -> None:
    for report in [(0, 0), (0, 5_000), (5_000, 0)]:
        assert learned([report]) == Calibration()


def test_it_survives_storage() -> None:
    for calibration in (Calibration(), learned(reports(1.25, 12_000)), learned([(20_000, 300)])):
        assert Calibration.from_json(calibration.to_json()) == calibration


def test_the_room_is_the_largest_estimate_that_fits() -> None:
    for factor, overhead in PROVIDERS:
        calibration = learned(reports(factor, overhead))
        for budget in (60_000, 61_234):
            room = calibration.room(budget)
            assert calibration.provider_at_most(room) <= budget < calibration.provider_at_most(room + 2)
    assert Calibration(overhead=50_000).room(10_000) == 1


def test_the_factor_may_be_higher_than_found() -> None:
    """By at most 0.3, less after much growth, and only for the tokens that follow the newest report."""
    new = learned([(1_000, 11_250)], Calibration(initial=1.25))
    assert (new.provider(3_000), new.provider_at_most(3_000)) == (13_750, 14_350)
    assert all(new.provider_at_most(size) == new.provider(size) for size in (500, 1_000))
    grown = learned([(10_000, 22_500)], new)
    assert (grown.factor, grown.growth) == (1.25, (9_000, 11_250))
    assert grown.provider_at_most(12_000) - grown.provider(12_000) == 60
    without_overhead = learned([(10_000, 12_600)], Calibration(initial=1.25))
    assert without_overhead.provider_at_most(20_000) - without_overhead.provider(20_000) == 100


@pytest.mark.parametrize("second", [(1_199, 2_300), (2_000, 6_000), (2_000, 2_400)])
def test_the_factor_is_not_learned_from_little_or_implausible_growth(second: tuple[int, int]) -> None:
    assert learned([(1_000, 2_000), second]).growth == (0, 0)


def test_the_factor_follows_the_newest_growth() -> None:
    calibration = learned([(1_000, 1_000), (400_000, 400_000)])
    assert calibration.growth == (100_000, 100_000)
    assert learned([(1_000, 1_000), (1_200, 1_240)]).growth == (200, 240)


def test_a_new_session_starts_with_the_calibration_of_similar_ones() -> None:
    similar = [learned(reports(1.25, overhead)) for overhead in (10_000, 12_000, 90_000)]
    new = calibration_learned(similar, budget=60_000)
    assert (new.reports, new.overhead) == (0, pytest.approx(12_000, abs=500))
    assert new.factor == pytest.approx(1.25, rel=0.03)
    assert calibration_learned(similar, budget=8_000).overhead == 4_000
