"""The trends page, the JSON data of its chart and the CSV export."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from accounts.models import Project
from sessions.models import SavedView
from sessions.pages.access import page_or_fragment, private, viewer_of, wants_fragment
from sessions.pages.figures import MICRO
from sessions.pages.text import spreadsheet_text
from sessions.pages.trends.cost_change import previous_is_complete
from sessions.pages.trends.parameters import Parameters, parameters_of, periods, today_of
from sessions.pages.trends.series import joined, names_of, prompt_sizes_json, series_json
from sessions.selectors.sessions import saved_views
from sessions.selectors.spending import budgets_spent
from sessions.selectors.trends.groups import SEPARATOR, group_names
from sessions.selectors.trends.latency import Latency, latency_groups, latency_rows, latency_total
from sessions.selectors.trends.projection import month_project
from sessions.selectors.trends.prompt_sizes import prompt_sizes
from sessions.selectors.trends.savings import Savings, savings_of
from sessions.selectors.trends.sums import (
    Sums,
    TrendRow,
    first_usage,
    top_sessions,
    trend_groups,
    trend_rows,
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


@require_safe
def trends_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Export every bucket and group with exact values. Money is in dollars with six decimals."""
    viewer = viewer_of(request, slug)
    parameters, _ = parameters_of(request)
    rows = sorted(_rows(viewer.project, parameters), key=lambda row: (row.bucket, row.key))
    names = names_of(viewer.project, parameters.grouping, {row.key for row in rows})
    latencies = latency_rows(
        project_id=viewer.project.pk,
        query=parameters.current,
        bucket=parameters.bucket,
        group=parameters.grouping,
    )
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([parameters.bucket, *group_names(parameters.grouping), *_CSV_COLUMNS, *_CSV_LATENCY])
    writer.writerows(
        [
            row.bucket,
            *map(spreadsheet_text, names[row.key]),
            *_csv_values(row.sums),
            *_csv_latency(latencies.get((row.bucket, row.key), Latency())),
        ]
        for row in rows
    )
    response = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    span = parameters.current.span
    response["Content-Disposition"] = (
        f'attachment; filename="{slug}-{parameters.grouping.replace(",", "-")}-{span.first}-{span.last}.csv"'
    )
    return private(response)


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
    begin = first_usage(project_id=project.pk)
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
            name,
            joined(names_of(project, name, [value])[value]),
            parameters.query_string(**{name: ""}),
        )
        for name, value in parameters.filters.items()
    ]


def _rows(project: Project, parameters: Parameters) -> list[TrendRow]:
    return trend_rows(
        project_id=project.pk, query=parameters.current, bucket=parameters.bucket, group=parameters.grouping
    )


_CSV_COLUMNS = (*(name for name in asdict(Sums()) if not name.endswith("_microusd")), "cost_usd", "saved_usd")

_CSV_LATENCY = ("first_token_p50_ms", "first_token_p95_ms", "duration_p50_ms", "duration_p95_ms")


def _csv_latency(latency: Latency) -> Iterator[int | None]:
    for found in (latency.first_token, latency.duration):
        yield found.p50 if found is not None else None
        yield found.p95 if found is not None else None


def _csv_values(sums: Sums) -> Iterator[Any]:
    values = asdict(sums)
    yield from (value for name, value in values.items() if not name.endswith("_microusd"))
    for money in (sums.cost_microusd, sums.saved_microusd):
        yield f"{Decimal(money) / MICRO:.6f}"
