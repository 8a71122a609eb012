"""What compactions cost, to be set against what they saved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import connection

import pricing
from sessions.models import AgentSession, Compaction, MemoryExtraction
from sessions.selectors.trends.sums import Sums, TrendQuery, filter_conditions, query_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """Money in micro-dollars. `gross` is what the hidden tokens would have cost; a compaction makes the
    provider read the rest anew, which is `rebilled`; a model that summarised is the `summariser`, one that
    read for working memories the `reader`."""

    gross: int
    rebilled: int
    summariser: int
    reader: int
    compactions: int
    without_model: int

    @property
    def net(self) -> int:
        return self.gross - self.rebilled - self.summariser - self.reader


def savings_of(*, project_id: UUID, wanted: TrendQuery, sums: Sums) -> Savings:
    """The savings of a span whose sums are known. Two queries."""
    start, _ = wanted.span.bounds()
    parameters = query_parameters(project_id, wanted)
    with connection.cursor() as cursor:
        cursor.execute(_sql(wanted), parameters)
        rows = cursor.fetchall()
        cursor.execute(_read_sql(wanted), parameters)
        [(read,)] = cursor.fetchall()
    return Savings(
        gross=sums.saved_microusd,
        rebilled=sum(_rebilled(model, tokens or 0, start) for model, tokens, *_ in rows),
        summariser=sum(cost or 0 for *_, cost in rows),
        reader=read or 0,
        compactions=sum(row[2] for row in rows),
        without_model=sum(row[3] for row in rows),
    )


def _rebilled(model: str, tokens: float, at: datetime) -> int:
    """Written to the cache instead of read from it."""
    table = pricing.rates(model, at.replace(minute=0, second=0, microsecond=0))
    if not table:
        return 0
    dearer = max(table[0].cache_write - table[0].cache_read, Decimal(0))
    return int(dearer * int(tokens) * 1_000_000)


def _sql(wanted: TrendQuery) -> str:
    return f"""
        SELECT s.model,
               sum((c.record->>'tokens_rebilled')::float8 * coalesce((c.record->>'calibration')::float8, 1))
                   FILTER (WHERE c.state IN ('done', 'reverted')),
               count(*) FILTER (WHERE c.state IN ('done', 'reverted')),
               count(*) FILTER (WHERE c.state IN ('done', 'reverted') AND coalesce(c.cost_microusd, 0) = 0
                                AND coalesce((c.record->>'summary_used')::bool, false) IS FALSE),
               sum(c.cost_microusd)::bigint
          FROM {Compaction._meta.db_table} c
          JOIN {AgentSession._meta.db_table} s ON s.id = c.session_id
         WHERE s.project_id = %(project)s AND c.finished_at >= %(start)s AND c.finished_at < %(end)s
               {filter_conditions(wanted, model="s.model")}
         GROUP BY s.model
    """  # noqa: S608  every piece is a name written in this file


def _read_sql(wanted: TrendQuery) -> str:
    return f"""
        SELECT sum(r.cost_microusd)::bigint
          FROM {MemoryExtraction._meta.db_table} r
          JOIN {AgentSession._meta.db_table} s ON s.id = r.session_id
         WHERE s.project_id = %(project)s AND r.at >= %(start)s AND r.at < %(end)s
               {filter_conditions(wanted, model="s.model")}
    """  # noqa: S608  every piece is a name written in this file
