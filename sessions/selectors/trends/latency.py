"""Percentiles of the latency of model calls in a period, by bucket and group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from sessions.models import CallHistogram
from sessions.selectors.trends.histograms import histogram_rows, percentile
from sessions.selectors.trends.sums import TrendQuery

_MEASURES = (CallHistogram.Measure.FIRST, CallHistogram.Measure.DURATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """The median and the 95th percentile in milliseconds, accurate to 9%, of a number of calls."""

    p50: int
    p95: int
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The latency of the calls that reported it: until the first token, and until the end."""

    first_token: Percentiles | None = None
    duration: Percentiles | None = None

    @property
    def is_reported(self) -> bool:
        return self.first_token is not None or self.duration is not None


def latency_total(*, project_id: UUID, query: TrendQuery) -> Latency:
    """Return the latency of the whole period. One query."""
    return next(iter(_latencies("", project_id, query).values()), Latency())


def latency_groups(*, project_id: UUID, query: TrendQuery, group: str) -> Mapping[str, Latency]:
    """Return the latency of the whole period by group. One query."""
    found = _latencies(group, project_id, query)
    return {key: latency for (_, key), latency in found.items()}


def latency_rows(
    *, project_id: UUID, query: TrendQuery, bucket: str, group: str
) -> Mapping[tuple[date | None, str], Latency]:
    """Return the latency by the first day of each bucket, and by group. One query."""
    return _latencies(group, project_id, query, bucket=bucket)


def _latencies(
    group: str, project_id: UUID, query: TrendQuery, *, bucket: str = ""
) -> dict[tuple[date | None, str], Latency]:
    histograms: dict[tuple[date | None, str], dict[str, Counter[int]]] = {}
    for day, name, measure, slot, calls in histogram_rows(
        group, project_id, query, measures=_MEASURES, bucket=bucket
    ):
        histograms.setdefault((day, name), {}).setdefault(measure, Counter())[slot] += calls
    return {
        place: Latency(**{measure: _percentiles(counts) for measure, counts in found.items()})
        for place, found in histograms.items()
    }


def _percentiles(counts: Counter[int]) -> Percentiles:
    calls = counts.total()
    return Percentiles(p50=percentile(counts, 0.50), p95=percentile(counts, 0.95), calls=calls)
