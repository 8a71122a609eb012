"""The prompt size chart of a session: its data as JSON, and as an accessible table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.text import Truncator
from django.views.decorators.http import require_safe

from sessions.charts.prompt_sizes import (
    OwnCompaction,
    budget_changes,
    columns,
    component_columns,
    downsample,
)
from sessions.models import AgentSession, Comment
from sessions.pages.access import Viewer, number_of, page_or_fragment, private, with_session
from sessions.pages.session.shared_responses import SharedResponses
from sessions.selectors.charts.samples import ChartSample, chart_sample
from sessions.selectors.charts.series import chart_components, compaction_markers, own_compactions
from sessions.selectors.comments import session_comments
from sessions.selectors.token_budgets import limit_of
from sessions.selectors.tools.by_turn import tool_tokens_by_turn
from sessions.store.bodies import json_bytes

#: Row limit of the table: enough to follow the shape, few enough for a screen reader.
TABLE_ROWS = 200
#: Characters of a comment in the tooltip.
_COMMENT_SHOWN = 160

_charts: SharedResponses[bytes] = SharedResponses()


@require_safe
@with_session
def session_chart(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Return prompt sizes per turn as columns, downsampled to what a screen can show.

    The query parameters `from` and `to` restrict the range of turns (zoom). With `tools=1`, returns the tool
    outputs in the prompts by tool instead. `live=1`: an open page loads new turns; it may share the answer
    with other pages.
    """
    make = _tools if request.GET.get("tools") == "1" else _chart
    first, end = number_of(request, "from"), number_of(request, "to")

    def data() -> bytes:
        return json_bytes(make(session, first=first, end=end))

    state = (session.turn_count, session.edits_revision, session.budget_tokens)
    key = (session.pk, state, make, first, end)
    shown = _charts.fetch(key, data) if request.GET.get("live") == "1" else data()
    return private(HttpResponse(shown, content_type="application/json"))


def _sample(
    session: AgentSession,
    compactions: Sequence[OwnCompaction],
    comments: Sequence[Comment],
    first: int | None,
    end: int | None,
) -> ChartSample:
    return chart_sample(
        session=session,
        first=first,
        end=end,
        compactions={marker.turn: marker.number for marker in compactions},
        keep={marker.turn for marker in compactions} | {comment.turn for comment in comments},
    )


def _tools(session: AgentSession, *, first: int | None, end: int | None) -> dict[str, Any]:
    compactions = compaction_markers(own_compactions(session=session))
    points = _sample(session, compactions, session_comments(session=session), first, end).points
    turns = [point.turn for point in points]
    components = chart_components(session=session, turns=turns)
    tools = tool_tokens_by_turn(
        session=session,
        turns=turns,
        totals=[sizes.get("tool_outputs", 0) for sizes in components],
        cleared=[point.turn for point in points if point.client_compaction is not None],
    )
    return {"turns": turns, "tools": tools}


def _chart(session: AgentSession, *, first: int | None, end: int | None) -> dict[str, Any]:
    compactions = compaction_markers(own_compactions(session=session))
    comments = session_comments(session=session)
    sample = _sample(session, compactions, comments, first, end)
    points = sample.points
    within = range(points[0].turn, points[-1].turn + 2) if points else range(0)
    turns, limit = [point.turn for point in points], limit_of(session)
    components = chart_components(session=session, turns=turns)
    budget = limit.tokens if limit and limit.name == "budget" else None
    return {
        **columns(points, [marker for marker in compactions if marker.turn in within]),
        "components": component_columns(components),
        "idle": sample.idle,
        "comments": [_comment(comment) for comment in comments if comment.turn in within],
        "misses": [{"turn": miss.turn, "tokens": miss.tokens, "cause": miss.text} for miss in sample.misses],
        "window": session.context_window,
        "budget": budget,
        "budgets": budget_changes(points, budget) if budget is not None else [],
        "turn_count": sample.turn_count,
        "is_sampled": len(points) < sample.turn_count,
    }


def _comment(comment: Comment) -> dict[str, Any]:
    text = Truncator(comment.text).chars(_COMMENT_SHOWN)
    return {"turn": comment.turn, "author": comment.author_name, "text": text}


@require_safe
@with_session
def session_chart_table(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Render the data of the chart as a table."""
    own = {marker.turn: marker for marker in compaction_markers(own_compactions(session=session))}
    sample = chart_sample(session=session, compactions={}, keep=own, limit=TABLE_ROWS)
    rows = [(point, own.get(point.turn)) for point in downsample(sample.points, TABLE_ROWS, keep=own)]
    context = {"viewer": viewer, "session": session, "rows": rows, "turn_count": sample.turn_count}
    return page_or_fragment(request, "sessions/chart_table.html", "sessions/_chart_table.html", context)
