"""Usage of several projects in a period, to compare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from sessions.selectors.trends.rows import usage_rows, whole_days
from sessions.selectors.trends.savings import Savings, savings_of_projects
from sessions.selectors.trends.sums import (
    SUMMED,
    SUMS,
    Sums,
    TrendQuery,
    filter_conditions,
    query_parameters,
    session_joins,
    sums_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectUsage:
    """Usage of a project. `sessions` are those with turns in the period."""

    project: UUID
    sessions: int
    sums: Sums
    savings: Savings


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectsUsage:
    """The projects with usage by cost, the highest first, and their sums."""

    rows: Sequence[ProjectUsage]
    sessions: int
    sums: Sums
    savings: Savings


def projects_usage(*, projects: Sequence[UUID], query: TrendQuery) -> ProjectsUsage:
    """Return the projects with usage in a period. Four queries."""
    found = sorted(_usage(projects, query), key=lambda row: (-row[2].cost_microusd, -row[2].turns, row[0]))
    savings = savings_of_projects(query=query, projects={id: sums for id, _, sums in found}) if found else {}
    return ProjectsUsage(
        rows=[
            ProjectUsage(project=id, sessions=sessions, sums=sums, savings=savings[id])
            for id, sessions, sums in found
        ],
        sessions=sum(sessions for _, sessions, _ in found),
        sums=sum((sums for *_, sums in found), Sums()),
        savings=sum(savings.values(), Savings()),
    )


def project_costs(*, projects: Sequence[UUID], query: TrendQuery) -> Mapping[UUID, int]:
    """Return the cost of each project with usage in a period, in micro-dollars. One query."""
    return {id: sums.cost_microusd for id, _, sums in _usage(projects, query)}


def _usage(projects: Sequence[UUID], query: TrendQuery) -> list[tuple[UUID, int, Sums]]:
    # Every interpolated value is a constant of this package.
    sql = f"""
        SELECT r.project_id, count(DISTINCT r.session_id), {SUMS}
          FROM ({usage_rows(("project_id", *SUMMED), projects="= ANY(%(projects)s)")}) r
          {session_joins(query, "")}
         WHERE true{filter_conditions(query, model="r.model")}
         GROUP BY 1
    """  # noqa: S608
    parameters = query_parameters(query) | whole_days(query.span, "")
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters | {"projects": [*projects]})
        return [(id, sessions, sums_of(sums)) for id, sessions, *sums in cursor.fetchall()]
