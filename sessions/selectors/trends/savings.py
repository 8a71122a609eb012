"""Savings by compaction and the costs to deduct from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import Any
from uuid import UUID

from django.db import connection

from accounts.models import Project
from pricing.custom import CustomPrice
from sessions.models import AgentSession, Compaction, MemoryExtraction
from sessions.selectors.custom_prices import custom_prices, project_prices
from sessions.selectors.savings import OWN, recaching_costs
from sessions.selectors.trends.groups import group_key, group_names, tags_join
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

    gross: int = 0
    rebilled: int = 0
    compactions: int = 0
    without_model: int = 0
    needed: int = 0
    recaps: int = 0
    by_model: int = 0
    summarizer: int = 0
    reader: int = 0

    @property
    def of_calls(self) -> int:
        """The additional cost of the agents' calls without compaction."""
        return self.gross - self.rebilled

    @property
    def net(self) -> int:
        return self.of_calls - self.summarizer - self.reader

    def __add__(self, other: Savings) -> Savings:
        return Savings(**{name: getattr(self, name) + getattr(other, name) for name in _SUMMED})


_SUMMED = tuple(field.name for field in fields(Savings))
#: The sums that `_sql` returns.
_COUNTED = _SUMMED[_SUMMED.index("compactions") :]


def savings_of(
    *, project: Project, query: TrendQuery, sums: Sums, group: str, groups: Mapping[str, Sums]
) -> tuple[Savings, Mapping[str, Savings]]:
    """Return the savings of a period, and those of its groups. Two queries, or four if the groups overlap.

    `sums` are those of the period, `groups` those of some or all groups.
    """
    found = _costs(project, query, group)
    by_group = {
        key: replace(found.get(key, Savings()), gross=of.saved_microusd) for key, of in groups.items()
    }
    # A session counts once per tag.
    costs = _costs(project, query, "") if "tag" in group_names(group) else found
    return replace(reduce(add, costs.values(), Savings()), gross=sums.saved_microusd), by_group


def savings_of_projects(*, query: TrendQuery, projects: Mapping[UUID, Sums]) -> Mapping[UUID, Savings]:
    """Return the savings of projects with known sums. Three queries."""
    custom = project_prices(projects)
    found = _savings(
        [*projects],
        query,
        key=lambda _: "s.project_id",
        join="",
        prices=lambda project: custom.get(project, ()),
    )
    return {
        project: replace(found.get(project, Savings()), gross=sums.saved_microusd)
        for project, sums in projects.items()
    }


def _costs(project: Project, query: TrendQuery, group: str) -> Mapping[str, Savings]:
    """Return the costs by key of the group, without the gross savings."""
    prices = custom_prices(project)

    def key(model: str) -> str:
        return group_key(group, model=model, session="s.id::text") if group else "''"

    return _savings([project.pk], query, key=key, join=tags_join(group), prices=lambda _: prices)


def _savings(
    projects: Sequence[UUID],
    query: TrendQuery,
    *,
    key: Callable[[str], str],
    join: str,
    prices: Callable[[Any], Sequence[CustomPrice]],
) -> Mapping[Any, Savings]:
    """Return the costs by key. Two queries. `key` returns its SQL expression from that of the model."""
    parameters = {**query_parameters(query), "projects": [*projects]}
    found: defaultdict[Any, Savings] = defaultdict(Savings)
    with connection.cursor() as cursor:
        cursor.execute(_sql(query, key("s.model"), join), parameters)
        for of, *counts in cursor.fetchall():
            found[of] += Savings(**dict(zip(_COUNTED, counts, strict=True)))
    # Skips the turns of sessions whose last call precedes the period, because they have no call in it.
    recached = recaching_costs(
        key=key("following.model"),
        condition=f"""
            s.project_id = ANY(%(projects)s) AND c.finished_at < %(end)s
            AND (c.finished_at >= %(start)s OR s.last_active_at >= %(start)s)
            AND following.at >= %(start)s AND following.at < %(end)s
            {filter_conditions(query, model="following.model")}
        """,
        join=join,
        parameters=parameters,
        prices=prices,
    )
    for of, microusd in recached.items():
        found[of] += Savings(rebilled=microusd)
    return found


def _sql(query: TrendQuery, key: str, join: str) -> str:
    """Return the query that counts the compactions finished in the period and adds up their costs by key."""
    return f"""
        SELECT {key},
               count(*) FILTER (WHERE {OWN}),
               count(*) FILTER (WHERE {OWN} AND coalesce(c.cost_microusd, 0) = 0
                                AND NOT coalesce(c.facts->'strategies' @> '["recap"]', false)
                                AND NOT coalesce((c.facts->>'summary_used')::bool, false)),
               count(*) FILTER (WHERE {OWN} AND (c.facts->>'summarizer_needed')::bool),
               count(*) FILTER (WHERE {OWN} AND c.facts->'strategies' @> '["recap"]'),
               count(*) FILTER (WHERE {OWN} AND (c.facts->>'summary_used')::bool),
               coalesce(sum(c.cost_microusd), 0)::bigint,
               0::bigint
          FROM {Compaction._meta.db_table} c
          JOIN {AgentSession._meta.db_table} s ON s.id = c.session_id {join}
         WHERE s.project_id = ANY(%(projects)s) AND c.finished_at >= %(start)s AND c.finished_at < %(end)s
               {filter_conditions(query, model="s.model")}
         GROUP BY 1
         UNION ALL
        SELECT {key}, 0, 0, 0, 0, 0, 0, coalesce(sum(r.cost_microusd), 0)::bigint
          FROM {MemoryExtraction._meta.db_table} r
          JOIN {AgentSession._meta.db_table} s ON s.id = r.session_id {join}
         WHERE s.project_id = ANY(%(projects)s) AND r.at >= %(start)s AND r.at < %(end)s
               {filter_conditions(query, model="s.model")}
         GROUP BY 1
    """  # noqa: S608  every interpolated value is a constant of this package
