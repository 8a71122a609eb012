"""The trends page, the JSON of its chart, and its figures as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from accounts.models import Project
from sessions.pages.access import page_or_fragment, private, viewer_of, wants_fragment
from sessions.pages.figures import MICRO
from sessions.pages.text import spreadsheet_text
from sessions.pages.trends.asked import Asked, asked_of, presets, today_of
from sessions.pages.trends.shown import MOST_ROWS, GroupRow, names_of, series_json
from sessions.selectors.spending import budgets_spent
from sessions.selectors.trends import (
    Sums,
    TrendRow,
    savings_of,
    top_sessions,
    trend_groups,
    trend_rows,
    trend_total,
)


@require_safe
def trends(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request, slug)
    asked, form = asked_of(request)
    context = {
        "viewer": viewer,
        "asked": asked,
        "form": form,
        "budgets": [] if wants_fragment(request) else budgets_spent(project_id=viewer.project.pk),
        **_figures(viewer.project, asked),
    }
    return page_or_fragment(request, "trends/page.html", "trends/_figures.html", context)


@require_safe
def trends_series(request: HttpRequest, slug: str) -> HttpResponse:
    """The chart's columns. Thinned by their buckets: a span has at most some hundred."""
    viewer = viewer_of(request, slug)
    asked, _ = asked_of(request)
    return private(JsonResponse(series_json(viewer.project, _rows(viewer.project, asked), asked)))


@require_safe
def trends_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Every bucket and group with exact figures: money in dollars with six decimals."""
    viewer = viewer_of(request, slug)
    asked, _ = asked_of(request)
    rows = sorted(_rows(viewer.project, asked), key=lambda row: (row.bucket, row.key))
    names = names_of(viewer.project, asked.group, {row.key for row in rows})
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([asked.bucket, asked.group, *_CSV_COLUMNS])
    writer.writerows([row.bucket, spreadsheet_text(names[row.key]), *_csv_values(row.sums)] for row in rows)
    response = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    span = asked.wanted.span
    response["Content-Disposition"] = (
        f'attachment; filename="{slug}-{asked.group}-{span.first}-{span.last}.csv"'
    )
    return private(response)


def _figures(project: Project, asked: Asked) -> dict[str, Any]:
    now = trend_groups(project_id=project.pk, wanted=asked.wanted, group=asked.group)
    before = trend_groups(project_id=project.pk, wanted=asked.before, group=asked.group)
    # A session counts for each of its tags, so the sum over tags is no total.
    if asked.group == "tag":
        total = trend_total(project_id=project.pk, wanted=asked.wanted)
        total_before = trend_total(project_id=project.pk, wanted=asked.before)
    else:
        total, total_before = sum(now.values(), Sums()), sum(before.values(), Sums())
    ranked = sorted(now.items(), key=lambda item: (-item[1].cost_microusd, -item[1].tokens, item[0]))
    names = names_of(project, asked.group, [key for key, _ in ranked[:MOST_ROWS]])
    return {
        "total": total,
        "total_before": total_before,
        "rows": [
            GroupRow(key=key, name=names[key], sums=sums, before=before.get(key, Sums()))
            for key, sums in ranked[:MOST_ROWS]
        ],
        "more_rows": max(len(ranked) - MOST_ROWS, 0),
        "savings": savings_of(project_id=project.pk, wanted=asked.wanted, sums=total),
        "top": top_sessions(project_id=project.pk, wanted=asked.wanted) if asked.group != "session" else [],
        "filters": _filters(project, asked),
        "presets": _presets(asked),
    }


def _presets(asked: Asked) -> list[tuple[str, str, bool]]:
    """Spans that people ask for: the name, the query that asks for it with all else as it is, and whether it
    is shown."""
    span = asked.wanted.span
    return [
        (
            name,
            asked.query(first=first.isoformat(), last=last.isoformat(), bucket="", other=""),
            (first, last) == (span.first, span.last),
        )
        for name, first, last in presets(today_of(span.zone))
    ]


def _filters(project: Project, asked: Asked) -> list[tuple[str, str, str]]:
    """What narrows the page: its name, its value as people know it, and the query without it."""
    return [
        (
            name,
            names_of(project, "member", [value])[value] if name == "member" else value,
            asked.query(**{name: ""}),
        )
        for name, value in asked.filters.items()
    ]


def _rows(project: Project, asked: Asked) -> list[TrendRow]:
    return trend_rows(project_id=project.pk, wanted=asked.wanted, bucket=asked.bucket, group=asked.group)


_CSV_COLUMNS = (*(name for name in asdict(Sums()) if not name.endswith("_microusd")), "cost_usd", "saved_usd")


def _csv_values(sums: Sums) -> Iterator[Any]:
    values = asdict(sums)
    yield from (value for name, value in values.items() if not name.endswith("_microusd"))
    for money in (sums.cost_microusd, sums.saved_microusd):
        yield f"{Decimal(money) / MICRO:.6f}"
