"""Histograms of calls (`CallHistogram`): percentiles of any period and group from stored counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, time
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.db import connection

from sessions.models import CallHistogram
from sessions.selectors.days import Span, buckets_of
from sessions.selectors.trends.groups import GROUP_KEYS, group_key
from sessions.selectors.trends.sums import TrendQuery, filter_conditions, query_parameters, session_joins


def percentile(counts: Counter[int], share: float) -> int:
    """Return the middle of the slot that contains this percentile of the calls."""
    left = share * counts.total()
    for slot in sorted(counts):
        left -= counts[slot]
        if left <= 0:
            break
    return round(2 ** ((slot + 0.5) / 4))


def histogram_rows(
    group: str, project_id: UUID, query: TrendQuery, *, measures: Sequence[str], bucket: str
) -> list[Any]:
    """Return rows of bucket, key, measure, slot and calls. `group` is a grouping, or "". One query."""
    # Every interpolated value is a constant of this package.
    sql = f"""
        SELECT bucket.day, {group_key(group) if group else "1"}, r.measure, r.slot, sum(r.calls)::bigint
          FROM unnest(%(days)s::date[], %(starts)s::timestamptz[], %(ends)s::timestamptz[])
               AS bucket (day, start, "end")
          JOIN {CallHistogram._meta.db_table} r
            ON r.project_id = %(project)s AND r.measure = ANY(%(measures)s)
               AND r.at >= bucket.start AND r.at < bucket."end"
          {session_joins(query, group)}
         WHERE true{filter_conditions(query, model=GROUP_KEYS["model"])}
         GROUP BY 1, 2, 3, 4
    """  # noqa: S608
    days, starts, ends = zip(*_intervals(query.span, bucket), strict=True)
    parameters = {"measures": list(measures), "days": list(days), "starts": list(starts), "ends": list(ends)}
    with connection.cursor() as cursor:
        cursor.execute(sql, {**query_parameters(query), "project": project_id, **parameters})
        return list(cursor.fetchall())


def _intervals(span: Span, bucket: str) -> list[tuple[date | None, datetime, datetime]]:
    """Return the first day, the start and the end of each bucket; one interval without a bucket."""
    start, end = span.bounds()
    if not bucket:
        return [(None, start, end)]
    days = buckets_of(span, bucket)
    edges = [start, *(datetime.combine(day, time(), tzinfo=span.zone) for day in days[1:]), end]
    return [(day, *edge) for day, edge in zip(days, pairwise(edges), strict=True)]
