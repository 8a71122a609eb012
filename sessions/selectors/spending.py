"""Spending of a project against its cost budgets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User

from sessions.models import CostBudget
from sessions.models.spending import BudgetScope, Period
from sessions.selectors.days import Span
from sessions.selectors.trends.sums import TrendQuery, trend_total

#: The adjective of each period.
ADJECTIVES = {"day": "daily", "week": "weekly", "month": "monthly"}
#: Percentages of a budget at which alerts are sent.
ALERT_PERCENTAGES = (50, 80, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSpending:
    """Spending in the current period of a budget, in micro-dollars. `name` is the name of its scope."""

    budget: CostBudget
    span: Span
    microusd: int
    name: str = ""

    @property
    def scope(self) -> str:
        """What the budget covers, for example "agent reader"; "" for the whole project."""
        return _scope_text(self.budget.scope, self.name)

    @property
    def percent(self) -> float:
        return 100 * self.microusd / self.budget.limit_microusd

    @property
    def reached(self) -> int | None:
        """The highest alert percentage that is reached, or None."""
        return max((share for share in ALERT_PERCENTAGES if self.percent >= share), default=None)


def budgets_spent(*, project_id: UUID, now: datetime | None = None) -> list[BudgetSpending]:
    """Return the spending of each budget, those of the whole project first, then the shortest period.

    One query, and one or two per budget.
    """
    rows = CostBudget.objects.filter(project=project_id).order_by("scope", "scope_value")
    order = {period: place for place, period in enumerate(Period.values)}
    ordered = sorted(rows, key=lambda row: (row.scope != BudgetScope.PROJECT, order[row.period]))
    return [budget_spent(row, now=now) for row in ordered]


def budget_spent(budget: CostBudget, *, now: datetime | None) -> BudgetSpending:
    """Return the spending of a budget in its current period. One query, or two for a member."""
    zone = ZoneInfo(budget.time_zone)
    span = period_of(budget.period, (now or datetime.now(UTC)).astimezone(zone).date(), zone)
    total = trend_total(project_id=budget.project_id, query=_query(budget, span))
    return BudgetSpending(budget=budget, span=span, microusd=total.cost_microusd, name=_scope_name(budget))


def scope_of(budget: CostBudget) -> str:
    """Describe what a budget covers, for example "agent reader"; "" for the whole project."""
    return _scope_text(budget.scope, _scope_name(budget))


def _query(budget: CostBudget, span: Span) -> TrendQuery:
    """Return the query for what the budget covers."""
    if budget.scope == BudgetScope.PROJECT:
        return TrendQuery(span=span)
    if budget.scope == BudgetScope.MEMBER:
        return TrendQuery(span=span, member=int(budget.scope_value))
    fields: dict[str, Any] = {budget.scope: budget.scope_value}
    return TrendQuery(span=span, **fields)


def _scope_name(budget: CostBudget) -> str:
    """Return the name of an agent, model or tag, or the user name of a member."""
    if budget.scope != BudgetScope.MEMBER:
        return budget.scope_value
    users = User.objects.filter(pk=int(budget.scope_value))
    return users.values_list("username", flat=True).first() or "former member"


def _scope_text(scope: str, name: str) -> str:
    return "" if scope == BudgetScope.PROJECT else f"{scope} {name}"


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
