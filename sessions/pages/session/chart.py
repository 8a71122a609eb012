"""The chart of a session: its points as JSON, and as a table for those who cannot see it."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from sessions.charts.prompt_sizes import columns, downsample
from sessions.pages.access import page_or_fragment, session_of, viewer_of
from sessions.pages.limits import limit_of
from sessions.selectors.charts import chart_points, own_compactions

#: Rows of the chart's table: enough to follow the shape, few enough to listen to.
TABLE_ROWS = 200


@require_safe
def session_chart(request: HttpRequest, slug: str, id: UUID) -> JsonResponse:
    """The prompt size per turn as columns, thinned to what a screen can show."""
    session = session_of(viewer_of(request, slug), id)
    points = chart_points(session=session)
    own = own_compactions(session=session)
    shown = downsample(points, keep={compaction.turn for compaction in own})
    limit = limit_of(session)
    response = JsonResponse(
        {
            **columns(shown, own),
            "window": session.context_window,
            "budget": limit.tokens if limit and limit.name == "budget" else None,
            "turn_count": len(points),
            "is_sampled": len(shown) < len(points),
        }
    )
    response["Cache-Control"] = "private, no-store"
    return response


@require_safe
def session_chart_table(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """The chart's figures for those who cannot see it."""
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    points = chart_points(session=session)
    own = {compaction.turn: compaction for compaction in own_compactions(session=session)}
    rows = [(point, own.get(point.turn)) for point in downsample(points, TABLE_ROWS, keep=own)]
    context = {"viewer": viewer, "session": session, "rows": rows, "turn_count": len(points)}
    return page_or_fragment(request, "sessions/chart_table.html", "sessions/_chart_table.html", context)
