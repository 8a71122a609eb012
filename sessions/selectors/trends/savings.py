"""Savings by compaction and the costs to deduct from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from sessions.models import AgentSession, Compaction, MemoryExtraction
from sessions.selectors.savings import APPLIED, NEXT_CALL, RECACHED_TOKENS, recaching_cost
from sessions.selectors.trends.sums import Sums, TrendQuery, filter_conditions, query_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """Savings and costs in micro-dollars.

    `gross` is the price of the removed tokens. `rebilled` is the cost of re-writing the prompt cache after
    compactions, charged when the next call reports its usage, `summarizer` that of summaries, `reader` that
    of memory extraction. `compactions` are those by contextapp, not by clients. `without_model` are the
    compactions that needed no summary: a recap that was written without a model, because there is no key or
    the model failed, does not count. `needed` are those whose free steps left the prompt over its budget.
    `recaps` are the compactions with a recap, `by_model` those whose recap a model wrote.
    """

    gross: int
    rebilled: int
    summarizer: int
    reader: int
    compactions: int
    without_model: int
    needed: int
    recaps: int
    by_model: int

    @property
    def net(self) -> int:
        return self.gross - self.rebilled - self.summarizer - self.reader


class _ModelCosts(NamedTuple):
    """One row of `_sql`: the compactions of sessions with one model."""

    model: str
    rebilled_tokens: float | None
    compactions: int
    without_model: int
    needed: int
    recaps: int
    by_model: int
    cost_microusd: int | None


def savings_of(*, project_id: UUID, query: TrendQuery, sums: Sums) -> Savings:
    """Return the savings of a period with known `sums`. Two queries."""
    start, _ = query.span.bounds()
    parameters = query_parameters(project_id, query)
    with connection.cursor() as cursor:
        cursor.execute(_sql(query), parameters)
        rows = [_ModelCosts(*row) for row in cursor.fetchall()]
        cursor.execute(_extraction_sql(query), parameters)
        [(extraction,)] = cursor.fetchall()
    return Savings(
        gross=sums.saved_microusd,
        rebilled=sum(recaching_cost(row.model, row.rebilled_tokens or 0, start) for row in rows),
        summarizer=sum(row.cost_microusd or 0 for row in rows),
        reader=extraction or 0,
        compactions=sum(row.compactions for row in rows),
        without_model=sum(row.without_model for row in rows),
        needed=sum(row.needed for row in rows),
        recaps=sum(row.recaps for row in rows),
        by_model=sum(row.by_model for row in rows),
    )


def _sql(query: TrendQuery) -> str:
    """Sum compactions by the time at which they finished, and the re-cached tokens by that of the next call.

    A session whose last call precedes the period has no next call in it, which limits the turns to look up.
    """
    finished = "c.finished_at >= %(start)s AND c.finished_at < %(end)s"
    counted = f"{APPLIED} AND {finished}"
    return f"""
        SELECT s.model,
               sum({RECACHED_TOKENS})
                   FILTER (WHERE {APPLIED} AND following.at >= %(start)s AND following.at < %(end)s)
                   AS rebilled_tokens,
               count(*) FILTER (WHERE {counted}) AS compactions,
               count(*) FILTER (WHERE {counted} AND coalesce(c.cost_microusd, 0) = 0
                                AND NOT coalesce(c.facts->'strategies' @> '["recap"]', false)
                                AND NOT coalesce((c.facts->>'summary_used')::bool, false))
                   AS without_model,
               count(*) FILTER (WHERE {counted} AND (c.facts->>'summarizer_needed')::bool) AS needed,
               count(*) FILTER (WHERE {counted} AND c.facts->'strategies' @> '["recap"]') AS recaps,
               count(*) FILTER (WHERE {counted} AND (c.facts->>'summary_used')::bool) AS by_model,
               (sum(c.cost_microusd) FILTER (WHERE {finished}))::bigint AS cost_microusd
          FROM {Compaction._meta.db_table} c
          JOIN {AgentSession._meta.db_table} s ON s.id = c.session_id
          {NEXT_CALL}
         WHERE s.project_id = %(project)s AND c.finished_at < %(end)s
               AND (c.finished_at >= %(start)s OR s.last_active_at >= %(start)s)
               {filter_conditions(query, model="s.model")}
         GROUP BY s.model
    """  # noqa: S608  every interpolated value is a constant


def _extraction_sql(query: TrendQuery) -> str:
    return f"""
        SELECT sum(r.cost_microusd)::bigint
          FROM {MemoryExtraction._meta.db_table} r
          JOIN {AgentSession._meta.db_table} s ON s.id = r.session_id
         WHERE s.project_id = %(project)s AND r.at >= %(start)s AND r.at < %(end)s
               {filter_conditions(query, model="s.model")}
    """  # noqa: S608  every interpolated value is a constant of this module
