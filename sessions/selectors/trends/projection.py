"""Project the cost of the current month from the cost of the last four weeks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from statistics import mean, variance
from uuid import UUID

from sessions.selectors.days import Span
from sessions.selectors.trends.sums import TrendQuery, costs_by_day

#: Days before today whose cost is the basis, and the fewest that are enough.
DAYS, LEAST_DAYS = 28, 7
#: Standard deviations on each side of the expected cost that cover 80% of a normal distribution.
_DEVIATIONS = 1.28


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The cost of a month in micro-dollars: spent so far, expected at its end, and the range of 80%.

    `days` is the number of days that it is based on.
    """

    month: date
    spent: int
    expected: int
    low: int
    high: int
    days: int


def month_project(*, project_id: UUID, query: TrendQuery, today: date) -> Projection | None:
    """Project the cost of the month of `today`, with the filters of the query. One query.

    Returns None if the first usage of the last four weeks is less than a week ago.
    """
    month = today.replace(day=1)
    first = min(month, today - timedelta(days=DAYS))
    span = Span(first=first, last=today, zone=query.span.zone)
    costs = costs_by_day(project_id=project_id, query=replace(query, span=span))
    basis = [today - timedelta(days=number) for number in range(1, DAYS + 1)]
    begin = min((day for day in basis if costs.get(day)), default=today)
    basis = [day for day in basis if day >= begin]
    if len(basis) < LEAST_DAYS:
        return None
    spent = sum(cost for day, cost in costs.items() if day >= month)
    left, deviation = _rest(_days_after(today), basis, costs)
    left += max(0, _rest([today], basis, costs)[0] - costs.get(today, 0))
    return Projection(
        month=month,
        spent=spent,
        expected=spent + left,
        low=spent + max(0, left - deviation),
        high=spent + left + deviation,
        days=len(basis),
    )


def _days_after(today: date) -> list[date]:
    """Return the days of the month after today."""
    days = (today + timedelta(days=number) for number in range(1, 31))
    return [day for day in days if day.month == today.month]


def _rest(days: Sequence[date], basis: Sequence[date], costs: dict[date, int]) -> tuple[int, int]:
    """Return the expected cost of the days, and half the width of its range.

    Workdays and weekends are projected separately. The range covers the spread of single days and the
    uncertainty of their mean.
    """
    left = spread = 0.0
    for is_weekend in (False, True):
        known = [costs.get(day, 0) for day in basis if (day.weekday() >= 5) == is_weekend]
        count = sum((day.weekday() >= 5) == is_weekend for day in days)
        if not known:
            known = [costs.get(day, 0) for day in basis]
        each = variance(known) if len(known) > 1 else 0.0
        left += count * mean(known)
        spread += each * (count + count * count / len(known))
    return round(left), round(_DEVIATIONS * spread**0.5)
