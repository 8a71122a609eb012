"""The prompt size chart of a session: its data as JSON, and as an accessible table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.text import Truncator
from django.views.decorators.http import require_safe

from sessions.charts.cache import CACHE_LIFE, misses
from sessions.charts.components import component_columns
from sessions.charts.prompt_sizes import PromptSize, columns, downsample, idle_gaps
from sessions.models import AgentSession
from sessions.pages.access import Viewer, number_of, page_or_fragment, private, with_session
from sessions.selectors.charts import (
    chart_components,
    chart_points,
    compaction_markers,
    own_compactions,
)
from sessions.selectors.comments import session_comments
from sessions.selectors.token_budgets import limit_of

#: Row limit of the table: enough to follow the shape, few enough for a screen reader.
TABLE_ROWS = 200
#: Cache misses that the chart marks: the largest ones.
MISSES = 300
#: Characters of a comment in the tooltip.
_COMMENT_SHOWN = 160


@require_safe
@with_session
def session_chart(request: HttpRequest, viewer: Viewer, session: AgentSession) -> JsonResponse:
    """Return prompt sizes per turn as columns, downsampled to what a screen can show.

    The query parameters `from` and `to` restrict the range of turns (zoom).
    """
    points = chart_points(session=session, first=number_of(request, "from"), end=number_of(request, "to"))
    return private(JsonResponse(_chart(session, points)))


def _chart(session: AgentSession, points: Sequence[PromptSize]) -> dict[str, Any]:
    compactions = own_compactions(session=session)
    within = range(points[0].turn, points[-1].turn + 2) if points else range(0)
    own = [marker for marker in compaction_markers(compactions) if marker.turn in within]
    idle = idle_gaps(points, CACHE_LIFE)
    missed = misses(points, {marker.turn: marker.number for marker in own})
    largest = sorted(missed, key=lambda miss: -miss.tokens)[:MISSES]
    keep = {marker.turn for marker in own} | {gap["turn"] for gap in idle} | {miss.turn for miss in largest}
    comments = [comment for comment in session_comments(session=session) if comment.turn in within]
    keep |= {comment.turn for comment in comments}
    points_drawn = downsample(points, keep=keep)
    parts = chart_components(session=session, turns=[point.turn for point in points_drawn])
    limit = limit_of(session)
    return {
        **columns(points_drawn, own),
        "components": component_columns(parts),
        "idle": idle,
        "comments": [
            {
                "turn": each.turn,
                "author": each.author_name,
                "text": Truncator(each.text).chars(_COMMENT_SHOWN),
            }
            for each in comments
        ],
        "misses": [{"turn": miss.turn, "tokens": miss.tokens, "cause": miss.text} for miss in largest],
        "window": session.context_window,
        "budget": limit.tokens if limit and limit.name == "budget" else None,
        "turn_count": len(points),
        "session_turns": session.turn_count,
        "is_sampled": len(points_drawn) < len(points),
    }


@require_safe
@with_session
def session_chart_table(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Render the data of the chart as a table."""
    points = chart_points(session=session)
    own = {marker.turn: marker for marker in compaction_markers(own_compactions(session=session))}
    rows = [(point, own.get(point.turn)) for point in downsample(points, TABLE_ROWS, keep=own)]
    context = {"viewer": viewer, "session": session, "rows": rows, "turn_count": len(points)}
    return page_or_fragment(request, "sessions/chart_table.html", "sessions/_chart_table.html", context)
