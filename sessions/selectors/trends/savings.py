"""Savings by compaction and the costs to deduct from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection

from accounts.models import Project
from sessions.models import AgentSession, Compaction, MemoryExtraction
from sessions.selectors.custom_prices import custom_prices
from sessions.selectors.savings import OWN, recaching_costs
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
    def of_calls(self) -> int:
        """The additional cost of the agents' calls without compaction."""
        return self.gross - self.rebilled

    @property
    def net(self) -> int:
        return self.of_calls - self.summarizer - self.reader


class _Compactions(NamedTuple):
    """The row of `_sql`."""

    compactions: int
    without_model: int
    needed: int
    recaps: int
    by_model: int
    cost_microusd: int | None
    extraction_microusd: int | None


def savings_of(*, project: Project, query: TrendQuery, sums: Sums) -> Savings:
    """Return the savings of a period with known `sums`. Two queries."""
    parameters = query_parameters(project.pk, query)
    with connection.cursor() as cursor:
        cursor.execute(_sql(query), parameters)
        [row] = cursor.fetchall()
    made = _Compactions(*row)
    # Skips the turns of sessions whose last call precedes the period, because they have no call in it.
    recached = recaching_costs(
        key="1",
        condition=f"""
            s.project_id = %(project)s AND c.finished_at < %(end)s
            AND (c.finished_at >= %(start)s OR s.last_active_at >= %(start)s)
            AND following.at >= %(start)s AND following.at < %(end)s
            {filter_conditions(query, model="following.model")}
        """,
        parameters=parameters,
        prices=custom_prices(project),
    )
    return Savings(
        gross=sums.saved_microusd,
        rebilled=recached.get(1, 0),
        summarizer=made.cost_microusd or 0,
        reader=made.extraction_microusd or 0,
        compactions=made.compactions,
        without_model=made.without_model,
        needed=made.needed,
        recaps=made.recaps,
        by_model=made.by_model,
    )


def _sql(query: TrendQuery) -> str:
    """Return the query that counts the compactions finished in the period and adds up their costs."""
    return f"""
        SELECT count(*) FILTER (WHERE {OWN}) AS compactions,
               count(*) FILTER (WHERE {OWN} AND coalesce(c.cost_microusd, 0) = 0
                                AND NOT coalesce(c.facts->'strategies' @> '["recap"]', false)
                                AND NOT coalesce((c.facts->>'summary_used')::bool, false))
                   AS without_model,
               count(*) FILTER (WHERE {OWN} AND (c.facts->>'summarizer_needed')::bool) AS needed,
               count(*) FILTER (WHERE {OWN} AND c.facts->'strategies' @> '["recap"]') AS recaps,
               count(*) FILTER (WHERE {OWN} AND (c.facts->>'summary_used')::bool) AS by_model,
               sum(c.cost_microusd)::bigint AS cost_microusd,
               ({_extraction_sql(query)}) AS extraction_microusd
          FROM {Compaction._meta.db_table} c
          JOIN {AgentSession._meta.db_table} s ON s.id = c.session_id
         WHERE s.project_id = %(project)s AND c.finished_at >= %(start)s AND c.finished_at < %(end)s
               {filter_conditions(query, model="s.model")}
    """  # noqa: S608  every interpolated value is a constant


def _extraction_sql(query: TrendQuery) -> str:
    return f"""
        SELECT sum(r.cost_microusd)::bigint
          FROM {MemoryExtraction._meta.db_table} r
          JOIN {AgentSession._meta.db_table} s ON s.id = r.session_id
         WHERE s.project_id = %(project)s AND r.at >= %(start)s AND r.at < %(end)s
               {filter_conditions(query, model="s.model")}
    """  # noqa: S608  every interpolated value is a constant of this module
