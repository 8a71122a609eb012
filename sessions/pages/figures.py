"""Format numbers for people: tokens, money, durations, percentages."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from django.template.defaultfilters import filesizeformat

_MICRO = Decimal(1_000_000)
_STEPS = ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k"))


def short_number(value: int | float) -> str:
    """Return up to three significant digits with a unit: 812, 1.24k, 12k, 236k, 1.05M, 1.36B."""
    sign, size = ("−" if value < 0 else ""), abs(value)
    for step, unit in _STEPS:
        if size >= step * 0.9995:
            return f"{sign}{_three_digits(size / step)}{unit}"
    return f"{sign}{size:.0f}"


def _three_digits(value: float) -> str:
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def money(microusd: int) -> str:
    """Format micro-dollars: two decimals from one dollar on, up to four below. A cost is never shown as 0."""
    dollars = Decimal(microusd) / _MICRO
    if microusd == 0:
        return "$0"
    if microusd < 100:
        return "<$0.0001"
    if dollars >= 1:
        return f"${dollars:,.2f}"
    text = f"{dollars:.4f}"
    return f"${text[:-2]}{text[-2:].rstrip('0')}"


def dollars_plain(microusd: int) -> str:
    """Format micro-dollars as a number of dollars for spreadsheets."""
    return f"{Decimal(microusd) / _MICRO:.6f}"


def money_exact(microusd: int) -> str:
    return f"${Decimal(microusd) / _MICRO:,.6f}"


def file_size(size: int) -> str:
    """Format bytes as 64 MB or 1.5 KB."""
    return filesizeformat(size).replace(".0\xa0", "\xa0")


def short_text_size(characters: int) -> str:
    return f"{short_number(characters)} characters"


def short_duration(span: timedelta) -> str:
    """Return the two largest units: 41 s, 12 min 3 s, 5 h 12 min, 3 d 4 h."""
    seconds = max(int(span.total_seconds()), 0)
    parts = []
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def short_milliseconds(value: int) -> str:
    """Return a latency with two significant digits or more: 640 ms, 4.2 s, 58 s, 1 min 15 s."""
    if value < 1_000:
        return f"{value} ms"
    if value < 9_950:
        return f"{value / 1_000:.1f} s"
    return short_duration(timedelta(seconds=round(value / 1_000)))


def percent(part: float, whole: float) -> str:
    """Return a share with a decimal near 0% and 100%: 2.5%, 50%, 97.2%. Never rounds to 0% or 100%."""
    value = 100 * part / whole if whole else 0.0
    if 0 < value < 0.05:
        return "<0.1%"
    if 99.95 <= value < 100:
        return ">99.9%"
    has_decimal = 0 < value < 9.95 or (90 < value < 110 and value != 100)
    return f"{value:,.{int(has_decimal)}f}".removesuffix(".0") + "%"
