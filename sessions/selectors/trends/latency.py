"""Percentiles of the latency of model calls in a period, by bucket and group.

Reads histograms (`CallHistogram`), so that percentiles of any period and group can be computed from stored
counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from django.db import connection

from sessions.models import AgentSession, CallHistogram
from sessions.selectors.trends.sums import (
    BUCKETS,
    GROUP_KEYS,
    TrendQuery,
    filter_conditions,
    group_key,
    group_names,
    query_parameters,
)


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
    return next(iter(_latencies("1", project_id, query).values()), Latency())


def latency_groups(*, project_id: UUID, query: TrendQuery, group: str) -> Mapping[str, Latency]:
    """Return the latency of the whole period by group. One query."""
    found = _latencies(group_key(group), project_id, query, tags="tag" in group_names(group))
    return {key: latency for (_, key), latency in found.items()}


def latency_rows(
    *, project_id: UUID, query: TrendQuery, bucket: str, group: str
) -> Mapping[tuple[date | None, str], Latency]:
    """Return the latency by the first day of each bucket, and by group. One query."""
    tags = "tag" in group_names(group)
    return _latencies(group_key(group), project_id, query, tags=tags, bucket=bucket)


def _latencies(
    key: str, project_id: UUID, query: TrendQuery, *, tags: bool = False, bucket: str = ""
) -> dict[tuple[date | None, str], Latency]:
    histograms: dict[tuple[date | None, str], dict[str, Counter[int]]] = {}
    for day, name, measure, slot, calls in _rows(key, project_id, query, tags=tags, bucket=bucket):
        histograms.setdefault((day, name), {}).setdefault(measure, Counter())[slot] += calls
    return {
        place: Latency(**{measure: _percentiles(counts) for measure, counts in found.items()})
        for place, found in histograms.items()
    }


def _percentiles(counts: Counter[int]) -> Percentiles:
    calls = counts.total()
    return Percentiles(p50=_percentile(counts, 0.50), p95=_percentile(counts, 0.95), calls=calls)


def _percentile(counts: Counter[int], share: float) -> int:
    """Return the middle of the slot in which this share of the calls is reached."""
    left = share * counts.total()
    for slot in sorted(counts):
        left -= counts[slot]
        if left <= 0:
            break
    return round(2 ** ((slot + 0.5) / 4))


def _rows(key: str, project_id: UUID, query: TrendQuery, *, tags: bool, bucket: str) -> list[Any]:
    assert bucket in {"", *BUCKETS}
    begins = f"date_trunc('{bucket}', at AT TIME ZONE %(zone)s)::date" if bucket else "NULL::date"
    unnested = "LEFT JOIN LATERAL unnest(s.tags) AS tag ON true" if tags else ""
    sql = f"""
        SELECT r.bucket, {key} AS key, r.measure, r.slot, sum(r.calls)::bigint
          FROM (SELECT session_id, model, {begins} AS bucket, measure, slot, sum(calls) AS calls
                  FROM {CallHistogram._meta.db_table}
                 WHERE project_id = %(project)s AND at >= %(start)s AND at < %(end)s
                   AND measure IN ('{CallHistogram.Measure.FIRST}', '{CallHistogram.Measure.DURATION}')
                 GROUP BY 1, 2, 3, 4, 5) r
          JOIN {AgentSession._meta.db_table} s ON s.id = r.session_id
          {unnested}
         WHERE true{filter_conditions(query, model=GROUP_KEYS["model"])}
         GROUP BY 1, 2, 3, 4
    """  # noqa: S608  every interpolated value is a constant of this package
    with connection.cursor() as cursor:
        cursor.execute(sql, query_parameters(project_id, query))
        return list(cursor.fetchall())
