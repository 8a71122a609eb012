from datetime import timedelta

import pytest

from sessions.pages import figures


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (812, "812"),
        (999, "999"),
        (1_000, "1k"),
        (1_240, "1.24k"),
        (9_996, "10k"),
        (12_412, "12.4k"),
        (99_960, "100k"),
        (236_000, "236k"),
        (999_600, "1M"),
        (231_500_000, "232M"),
        (-1_500, "−1.5k"),
    ],
)
def test_short_numbers(value, shown):
    assert figures.short_number(value) == shown


@pytest.mark.parametrize(
    ("microusd", "shown"),
    [
        (0, "$0"),
        (1, "<$0.0001"),
        (12_345, "$0.0123"),
        (19_000, "$0.019"),
        (300_000, "$0.30"),
        (999_949, "$0.9999"),
        (12_780_000, "$12.78"),
        (1_234_567_890, "$1,234.57"),
    ],
)
def test_costs_are_never_rounded_to_zero(microusd, shown):
    assert figures.money(microusd) == shown


def test_money_exact():
    assert figures.money_exact(12_345) == "$0.012345"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (41, "41 s"),
        (723, "12 min 3 s"),
        (18_720, "5 h 12 min"),
        (273_600, "3 d 4 h"),
        (-5, "0 s"),
    ],
)
def test_duration_has_two_units(seconds, shown):
    assert figures.short_duration(timedelta(seconds=seconds)) == shown


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 10, "0%"),
        (1, 9_000, "<0.1%"),
        (1, 2_000, "0.1%"),
        (1, 40, "2.5%"),
        (1, 3, "33%"),
        (5, 10, "50%"),
        (0.972, 1, "97.2%"),
        (94, 100, "94%"),
        (9_999, 10_000, ">99.9%"),
        (10, 10, "100%"),
        (1_005, 1_000, "100.5%"),
        (5, 4, "125%"),
        (35_716, 1, "3,571,600%"),
        (3, 0, "0%"),
    ],
)
def test_percent(part, whole, shown):
    assert figures.percent(part, whole) == shown


@pytest.mark.parametrize(
    ("size", "shown"), [(1, "1 byte"), (1_536, "1.5 KB"), (64 << 20, "64 MB"), (100 << 20, "100 MB")]
)
def test_file_sizes(size, shown):
    assert figures.file_size(size).replace("\xa0", " ") == shown
