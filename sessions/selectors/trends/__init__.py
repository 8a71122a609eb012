"""Reads of the sums by the quarter of an hour: what a project used over time, and what compaction saved."""

from sessions.selectors.trends.savings import Savings, savings_of
from sessions.selectors.trends.sums import (
    BUCKETS,
    GROUPS,
    Sums,
    TopSession,
    TrendQuery,
    TrendRow,
    top_sessions,
    trend_groups,
    trend_rows,
    trend_total,
)

__all__ = [
    "BUCKETS",
    "GROUPS",
    "Savings",
    "Sums",
    "TopSession",
    "TrendQuery",
    "TrendRow",
    "savings_of",
    "top_sessions",
    "trend_groups",
    "trend_rows",
    "trend_total",
]
