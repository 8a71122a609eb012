"""Percentiles of the prompt size of model calls over time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from sessions.models import CallHistogram
from sessions.selectors.trends.histograms import histogram_rows, percentile
from sessions.selectors.trends.sums import TrendQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSizes:
    """Percentiles of the reported prompt sizes in a bucket, in tokens, accurate to 9%."""

    bucket: date
    p50: int
    p90: int
    p99: int
    calls: int


def prompt_sizes(*, project_id: UUID, query: TrendQuery, bucket: str) -> list[PromptSizes]:
    """Return the buckets with calls, in order. One query."""
    histograms: dict[date, Counter[int]] = {}
    measures = (CallHistogram.Measure.PROMPT,)
    for day, _, _, slot, calls in histogram_rows("", project_id, query, measures=measures, bucket=bucket):
        histograms.setdefault(day, Counter())[slot] += calls
    return [
        PromptSizes(
            bucket=day,
            p50=percentile(counts, 0.50),
            p90=percentile(counts, 0.90),
            p99=percentile(counts, 0.99),
            calls=counts.total(),
        )
        for day, counts in sorted(histograms.items())
    ]
