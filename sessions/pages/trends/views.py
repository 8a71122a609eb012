"""The trends page and the JSON data of its chart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from accounts.models import Project
from sessions.models import SavedView
from sessions.pages.access import page_or_fragment, private, viewer_of, wants_fragment
from sessions.pages.trends.cost_change import previous_is_complete
from sessions.pages.trends.parameters import Parameters, parameters_of, periods, today_of
from sessions.pages.trends.series import joined, names_of, prompt_sizes_json, series_json
from sessions.selectors.lists.sessions import saved_views
from sessions.selectors.samples import sample_sessions
from sessions.selectors.spending import budgets_spent
from sessions.selectors.trends.groups import SEPARATOR, group_names
from sessions.selectors.trends.latency import Latency, latency_groups, latency_total
from sessions.selectors.trends.projection import month_project
from sessions.selectors.trends.prompt_sizes import prompt_sizes
from sessions.selectors.trends.savings import Savings, savings_of
from sessions.selectors.trends.sums import (
    Sums,
    first_usage,
    top_sessions,
    trend_groups,
    trend_sums,
    trend_total,
)

#: The number of rows in the table of groups.
_MAX_ROWS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One row of the table: a group's totals in the current and the previous period.

    `query` is the query string that shows only this group; empty for sessions and unnamed groups.
    `session_id` is empty unless the rows are of sessions.
    """

    name: str
    session_id: str
    query: str
    sums: Sums
    previous: Sums
    latency: Latency
    savings: Savings


@require_safe
def trends(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request, slug)
    parameters, form = parameters_of(request)
    context = {
        "viewer": viewer,
        "parameters": parameters,
        "form": form,
        "saved": saved_views(project=viewer.project, user=request.user, page=SavedView.Page.TRENDS),
        "budgets": [] if wants_fragment(request) else budgets_spent(project_id=viewer.project.pk),
        **_figures(viewer.project, parameters),
    }
    return page_or_fragment(request, "trends/page.html", "trends/_figures.html", context)


@require_safe
def trends_series(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the chart's data as JSON. The length of a period limits it to a few hundred columns."""
    viewer = viewer_of(request, slug)
    parameters, _ = parameters_of(request)
    return private(JsonResponse(series_json(viewer.project, parameters)))


@require_safe
def trends_table(request: HttpRequest, slug: str) -> HttpResponse:
    """Render the data of the chart as a table, without the buckets that have no data."""
    viewer = viewer_of(request, slug)
    parameters, _ = parameters_of(request)
    data = series_json(viewer.project, parameters)
    columns = zip(*(series["values"] for series in data["series"]), strict=True)
    rows = [(bucket, values, sum(values)) for bucket, values in zip(data["buckets"], columns, strict=False)]
    context = {
        "viewer": viewer,
        "parameters": parameters,
        "filters": _filters(viewer.project, parameters),
        "series": data["series"],
        "has_total": data["has_total"] and len(data["series"]) > 1,
        "unit": data["unit"],
        "rows": [row for row in rows if any(row[1])],
    }
    return page_or_fragment(request, "trends/table.html", "trends/_table.html", context)


@require_safe
def trends_prompts(request: HttpRequest, slug: str) -> HttpResponse:
    """Render percentiles of the prompt size by bucket: data for the chart, and a table."""
    viewer = viewer_of(request, slug)
    parameters, _ = parameters_of(request)
    sizes = prompt_sizes(project_id=viewer.project.pk, query=parameters.current, bucket=parameters.bucket)
    context = {
        "viewer": viewer,
        "parameters": parameters,
        "sizes": sizes,
        "series": prompt_sizes_json(sizes, parameters),
    }
    return page_or_fragment(request, "trends/prompts.html", "trends/_prompts.html", context)


def _figures(project: Project, parameters: Parameters) -> dict[str, Any]:
    query, group = parameters.current, parameters.grouping
    groups = trend_groups(project_id=project.pk, query=query, group=group, limit=_MAX_ROWS)
    # A session counts once per tag, so the sum over tags is larger than the total.
    is_complete = groups.count == len(groups.largest) and "tag" not in group_names(group)
    total = (
        sum(groups.largest.values(), Sums())
        if is_complete
        else trend_total(project_id=project.pk, query=query)
    )
    total_previous = trend_total(project_id=project.pk, query=parameters.previous)
    latency = latency_total(project_id=project.pk, query=query)
    savings, by_group = savings_of(
        project=project, query=query, sums=total, group=group, groups=groups.largest
    )
    rows = _group_rows(project, parameters, groups.largest, by_group, has_latency=latency.is_reported)
    unlisted_previous = total_previous.cost_microusd - sum(row.previous.cost_microusd for row in rows)
    begin = first_usage(projects=[project.pk])
    return {
        "total": total,
        "latency": latency,
        "total_previous": total_previous,
        "is_cost_change_explained": total_previous.cost_microusd > 0
        and previous_is_complete(parameters, begin),
        "rows": rows,
        "more_rows": groups.count - len(rows),
        "unlisted_previous": unlisted_previous if is_complete else 0,
        "savings": savings,
        "top": top_sessions(project_id=project.pk, query=query) if parameters.group != "session" else [],
        "filters": _filters(project, parameters),
        "presets": periods(parameters, begin),
        "has_sample": bool(sample_sessions(project.pk)),
        "without_sample": parameters.query_string(sample="exclude"),
        "projection": month_project(project_id=project.pk, query=query, today=today_of(query.span.zone)),
    }


def _group_rows(
    project: Project,
    parameters: Parameters,
    groups: Mapping[str, Sums],
    savings: Mapping[str, Savings],
    *,
    has_latency: bool,
) -> list[GroupRow]:
    group = parameters.grouping
    previous = trend_sums(project_id=project.pk, query=parameters.previous, group=group, keys=[*groups])
    latencies = (
        latency_groups(project_id=project.pk, query=parameters.current, group=group) if has_latency else {}
    )
    names = names_of(project, group, groups)
    return [
        GroupRow(
            name=joined(names[key]),
            session_id=key.split(SEPARATOR)[0] if parameters.group == "session" else "",
            query="" if parameters.group == "session" else _row_query(parameters, key),
            sums=sums,
            previous=previous.get(key, Sums()),
            latency=latencies.get(key, Latency()),
            savings=savings[key],
        )
        for key, sums in groups.items()
    ]


def _row_query(parameters: Parameters, key: str) -> str:
    names = dict(zip(group_names(parameters.grouping), key.split(SEPARATOR), strict=True))
    return parameters.query_string(**names, group="session", split="") if all(names.values()) else ""


def _filters(project: Project, parameters: Parameters) -> list[tuple[str, str, str]]:
    """Return the active filters: name, displayed value and the query string that removes it."""
    return [
        (
            *(
                ("sample data", "excluded")
                if name == "sample"
                else (name, joined(names_of(project, name, [value])[value]))
            ),
            parameters.query_string(**{name: ""}),
        )
        for name, value in parameters.filters.items()
    ]
