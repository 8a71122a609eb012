"""CSV exports of the trends pages, with exact values. Money is in dollars with six decimals."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from sessions.pages.access import private, viewer_of
from sessions.pages.figures import dollars_plain
from sessions.pages.text import spreadsheet_text
from sessions.pages.trends.parameters import parameters_of
from sessions.pages.trends.projects import projects_compared
from sessions.pages.trends.series import names_of
from sessions.selectors.days import Span
from sessions.selectors.trends.groups import group_names
from sessions.selectors.trends.latency import Latency, latency_rows
from sessions.selectors.trends.sums import Sums, trend_rows

_COLUMNS = (*(name for name in asdict(Sums()) if not name.endswith("_microusd")), "cost_usd", "saved_usd")

_LATENCY_COLUMNS = ("first_token_p50_ms", "first_token_p95_ms", "duration_p50_ms", "duration_p95_ms")


@require_safe
def trends_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Export every bucket and group."""
    project = viewer_of(request, slug).project
    parameters, _ = parameters_of(request)
    query, bucket, group = parameters.current, parameters.bucket, parameters.grouping
    rows = trend_rows(project_id=project.pk, query=query, bucket=bucket, group=group)
    names = names_of(project, group, {row.key for row in rows})
    latencies = latency_rows(project_id=project.pk, query=query, bucket=bucket, group=group)
    header = [bucket, *group_names(group), *_COLUMNS, *_LATENCY_COLUMNS]
    lines = [
        [
            row.bucket,
            *map(spreadsheet_text, names[row.key]),
            *_values(row.sums),
            *_latency(latencies.get((row.bucket, row.key), Latency())),
        ]
        for row in sorted(rows, key=lambda row: (row.bucket, row.key))
    ]
    return _response(f"{slug}-{group.replace(',', '-')}", query.span, [header, *lines])


@require_safe
def trends_projects_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Export the comparison of the viewer's projects: all of them, not only a page."""
    compared = projects_compared(request, viewer_of(request, slug))
    header = ["project", "slug", "sessions", *_COLUMNS, "net_savings_usd", "previous_cost_usd"]
    lines = [
        [
            spreadsheet_text(row.project.name),
            row.project.slug,
            row.usage.sessions,
            *_values(row.usage.sums),
            dollars_plain(row.usage.savings.net),
            dollars_plain(row.previous),
        ]
        for row in compared.rows
    ]
    return _response("projects", compared.parameters.current.span, [header, *lines])


def _response(name: str, span: Span, lines: Iterable[Iterable[Any]]) -> HttpResponse:
    text = io.StringIO()
    csv.writer(text).writerows(lines)
    response = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}-{span.first}-{span.last}.csv"'
    return private(response)


def _latency(latency: Latency) -> Iterator[int | None]:
    for found in (latency.first_token, latency.duration):
        yield found.p50 if found is not None else None
        yield found.p95 if found is not None else None


def _values(sums: Sums) -> Iterator[Any]:
    values = asdict(sums)
    yield from (value for name, value in values.items() if not name.endswith("_microusd"))
    yield from map(dollars_plain, (sums.cost_microusd, sums.saved_microusd))
