"""Usage of a project over time and savings by compaction, read from the quarter-hour rollups."""

from sessions.selectors.trends.latency import Latency, latency_groups, latency_rows, latency_total
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
    "Latency",
    "Savings",
    "Sums",
    "TopSession",
    "TrendQuery",
    "TrendRow",
    "latency_groups",
    "latency_rows",
    "latency_total",
    "savings_of",
    "top_sessions",
    "trend_groups",
    "trend_rows",
    "trend_total",
]
