"""Usage of a project over time and savings by compaction, read from the quarter-hour rollups."""

from sessions.selectors.trends.cost_comparison import CostComparison, cost_comparison
from sessions.selectors.trends.latency import Latency, latency_groups, latency_rows, latency_total
from sessions.selectors.trends.projection import Projection, month_project
from sessions.selectors.trends.prompt_sizes import PromptSizes, prompt_sizes
from sessions.selectors.trends.savings import Savings, savings_of
from sessions.selectors.trends.sums import (
    BUCKETS,
    GROUPS,
    SEPARATOR,
    ModelSums,
    Sums,
    TopSession,
    TrendGroups,
    TrendQuery,
    TrendRow,
    bucket_start,
    buckets_of,
    first_usage,
    group_names,
    top_sessions,
    trend_groups,
    trend_models,
    trend_rows,
    trend_sums,
    trend_total,
    trend_values,
)

__all__ = [
    "BUCKETS",
    "GROUPS",
    "SEPARATOR",
    "CostComparison",
    "Latency",
    "ModelSums",
    "Projection",
    "PromptSizes",
    "Savings",
    "Sums",
    "TopSession",
    "TrendGroups",
    "TrendQuery",
    "TrendRow",
    "bucket_start",
    "buckets_of",
    "cost_comparison",
    "first_usage",
    "group_names",
    "latency_groups",
    "latency_rows",
    "latency_total",
    "month_project",
    "prompt_sizes",
    "savings_of",
    "top_sessions",
    "trend_groups",
    "trend_models",
    "trend_rows",
    "trend_sums",
    "trend_total",
    "trend_values",
]
