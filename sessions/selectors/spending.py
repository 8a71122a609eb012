"""Spending of a project against its cost budgets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from sessions.models import CostBudget
from sessions.models.spending import Period
from sessions.selectors.trends import TrendQuery, trend_total
from sessions.selectors.usage import Span

#: Percentages of a budget at which alerts are sent.
ALERT_PERCENTAGES = (50, 80, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSpending:
    """Spending in the current period of a budget, in micro-dollars."""

    budget: CostBudget
    span: Span
    microusd: int

    @property
    def percent(self) -> float:
        return 100 * self.microusd / self.budget.limit_microusd

    @property
    def reached(self) -> int | None:
        """The highest alert percentage that is reached, or None."""
        return max((share for share in ALERT_PERCENTAGES if self.percent >= share), default=None)


def budgets_spent(*, project_id: UUID, now: datetime | None = None) -> list[BudgetSpending]:
    """Return the spending of each budget, shortest period first. One query, and one per budget."""
    rows = CostBudget.objects.filter(project=project_id)
    order = {period: place for place, period in enumerate(Period.values)}
    return [budget_spent(row, now=now) for row in sorted(rows, key=lambda row: order[row.period])]


def budget_spent(budget: CostBudget, *, now: datetime | None = None) -> BudgetSpending:
    """Return the spending of a budget in its current period. One query."""
    zone = ZoneInfo(budget.time_zone)
    span = period_of(budget.period, (now or datetime.now(UTC)).astimezone(zone).date(), zone)
    total = trend_total(project_id=budget.project_id, query=TrendQuery(span=span))
    return BudgetSpending(budget=budget, span=span, microusd=total.cost_microusd)


def period_of(period: str, today: date, zone: ZoneInfo) -> Span:
    """Return the day, week (from Monday) or month that contains `today`."""
    if period == Period.DAY:
        return Span(first=today, last=today, zone=zone)
    if period == Period.WEEK:
        monday = today - timedelta(days=today.weekday())
        return Span(first=monday, last=monday + timedelta(days=6), zone=zone)
    first = today.replace(day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    return Span(first=first, last=following - timedelta(days=1), zone=zone)
