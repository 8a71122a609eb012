"""Histograms of calls (`CallHistogram`): percentiles of any period and group from stored counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection

from sessions.models import AgentSession, CallHistogram
from sessions.selectors.trends.sums import (
    BUCKETS,
    GROUP_KEYS,
    TrendQuery,
    filter_conditions,
    query_parameters,
)


def percentile(counts: Counter[int], share: float) -> int:
    """Return the middle of the slot that contains this percentile of the calls."""
    left = share * counts.total()
    for slot in sorted(counts):
        left -= counts[slot]
        if left <= 0:
            break
    return round(2 ** ((slot + 0.5) / 4))


def histogram_rows(
    key: str,
    project_id: UUID,
    query: TrendQuery,
    *,
    measures: Sequence[str],
    bucket: str,
    tags: bool = False,
) -> list[Any]:
    """Return rows of bucket, key, measure, slot and calls. `key` is an SQL expression. One query."""
    assert bucket in {"", *BUCKETS}
    begins = f"date_trunc('{bucket}', at AT TIME ZONE %(zone)s)::date" if bucket else "NULL::date"
    unnested = "LEFT JOIN LATERAL unnest(s.tags) AS tag ON true" if tags else ""
    sql = f"""
        SELECT r.bucket, {key} AS key, r.measure, r.slot, sum(r.calls)::bigint
          FROM (SELECT session_id, model, {begins} AS bucket, measure, slot, sum(calls) AS calls
                  FROM {CallHistogram._meta.db_table}
                 WHERE project_id = %(project)s AND at >= %(start)s AND at < %(end)s
                   AND measure = ANY(%(measures)s)
                 GROUP BY 1, 2, 3, 4, 5) r
          JOIN {AgentSession._meta.db_table} s ON s.id = r.session_id
          {unnested}
         WHERE true{filter_conditions(query, model=GROUP_KEYS["model"])}
         GROUP BY 1, 2, 3, 4
    """  # noqa: S608  every interpolated value is a constant of this package
    with connection.cursor() as cursor:
        cursor.execute(sql, {**query_parameters(project_id, query), "measures": list(measures)})
        return list(cursor.fetchall())
