"""The main page of a session: key figures, chart and transcript, one page of turns at a time."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from sessions.charts.slope import SLOPE_TURNS
from sessions.models import AgentSession
from sessions.pages.access import Viewer, number_of, page_or_fragment, wants_fragment, with_session
from sessions.pages.tabs import session_context
from sessions.pages.turns import turn_views
from sessions.selectors.charts import chart_points, prompt_slope
from sessions.selectors.expensive import estimated_outputs, expensive_calls
from sessions.selectors.jumps import largest_jumps
from sessions.selectors.search.related import related_sessions
from sessions.selectors.sessions import session_children
from sessions.selectors.token_budgets import calibration_of
from sessions.selectors.transcript import TurnsPage, turns_page


@require_safe
@with_session
def session_detail(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Render the page; for htmx, a page of turns (query parameters `before`, `after` or `turn`).

    `view=text` shows unchanged text, without Markdown, colors and highlighting.
    """
    page = _turns(request, session)
    is_plain = request.GET.get("view") == "text"
    context: dict[str, Any] = {
        **session_context(viewer, session, "session"),
        "page": page,
        "turns": turn_views(session, page, is_plain=is_plain),
        "is_plain": is_plain,
        "part": _part(request),
        "at_turn": number_of(request, "turn"),
        "last_turn": session.turn_count - 1,
    }
    if not wants_fragment(request):
        points = chart_points(session=session, last=SLOPE_TURNS)
        context |= {
            "children": session_children(session=session),
            "related": related_sessions(session=session),
            "slope": prompt_slope(session=session, points=points),
            "jumps": largest_jumps(session=session),
            "expensive": expensive_calls(session=session),
            "estimated_outputs": estimated_outputs(session=session),
            "calibration": calibration_of(session.calibration, model=session.model),
        }
    return page_or_fragment(request, "sessions/detail.html", "sessions/_turns.html", context)


def _turns(request: HttpRequest, session: AgentSession) -> TurnsPage:
    return turns_page(
        session=session,
        before=number_of(request, "before", maximum=session.turn_count),
        after=number_of(request, "after", maximum=session.turn_count),
        around=_requested_turn(request, session),
    )


def _requested_turn(request: HttpRequest, session: AgentSession) -> int | None:
    """Return the turn requested by the query string, directly or by message position."""
    position = number_of(request, "message")
    if position is not None:
        return session.messages.filter(position=position).values_list("turn_index", flat=True).first()
    return number_of(request, "turn", maximum=max(session.turn_count - 1, 0))


def _part(request: HttpRequest) -> str:
    """Return whether a fragment continues the transcript at its older or newer end."""
    if not wants_fragment(request):
        return ""
    return "older" if "before" in request.GET else "newer" if "after" in request.GET else ""
