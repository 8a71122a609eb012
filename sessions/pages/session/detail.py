"""The main page of a session: key figures, chart and transcript, one page of turns at a time."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from sessions.charts.slope import SLOPE_TURNS
from sessions.models import AgentSession
from sessions.pages.access import Viewer, number_of, page_or_fragment, wants_fragment, with_session
from sessions.pages.session.filters import filter_context, filter_of, filtered_context
from sessions.pages.session.live import live_context
from sessions.pages.session.tree import tree_context
from sessions.pages.tabs import session_context
from sessions.pages.turns import turn_views
from sessions.selectors.charts.expensive import estimated_outputs, expensive_calls
from sessions.selectors.charts.jumps import largest_jumps
from sessions.selectors.charts.series import chart_points, compactions_by_turn, prompt_slope
from sessions.selectors.charts.stretches import largest_of
from sessions.selectors.comments import session_comments
from sessions.selectors.savings import savings_of_session
from sessions.selectors.search.related import related_sessions
from sessions.selectors.token_budgets import session_calibration
from sessions.selectors.transcripts.pages import MESSAGES_SHOWN, TurnsPage, turns_page


@require_safe
@with_session
def session_detail(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Render the page; for htmx, a page of turns (query parameters `before`, `after` or `turn`).

    `role`, `tool` and `errors=1` select messages; `before` and `after` are positions then. `view=text` shows
    the text as pushed, without Markdown, colors and highlighting.
    """
    filters = filter_of(request)
    turn = _requested_turn(request, session)
    context: dict[str, Any] = {
        **session_context(viewer, session, "session"),
        **(
            filtered_context(request, session, filters, turn=turn)
            if filters.is_set
            else _transcript(request, session, turn)
        ),
        "part": _part(request),
        "last_turn": session.turn_count - 1,
    }
    if not wants_fragment(request):
        context |= _about(session) | filter_context(request, session, filters)
        context |= live_context(request, viewer, session)
    fragment = "sessions/_found_turns.html" if filters.is_set else "sessions/_turns.html"
    return page_or_fragment(request, "sessions/detail.html", fragment, context)


def _about(session: AgentSession) -> dict[str, Any]:
    points, known = chart_points(session=session, last=SLOPE_TURNS), largest_of(session=session)
    return {
        **tree_context(session),
        "comments": session_comments(session=session),
        "related": related_sessions(session=session),
        "slope": prompt_slope(
            session=session, points=points, compactions=compactions_by_turn(session=session)
        ),
        "jumps": largest_jumps(session=session, known=known),
        "expensive": expensive_calls(session=session, known=known),
        "estimated_outputs": estimated_outputs(session=session, known=known),
        "calibration": session_calibration(session),
        "savings": savings_of_session(session),
    }


def _transcript(request: HttpRequest, session: AgentSession, turn: int | None) -> dict[str, Any]:
    page = _turns(request, session, turn)
    return {
        "page": page,
        "turns": turn_views(session, page, is_plain=_is_plain(request)),
        "at_turn": number_of(request, "turn"),
        "view_query": "&view=text" if _is_plain(request) else "",
    }


def _is_plain(request: HttpRequest) -> bool:
    return request.GET.get("view") == "text"


def _turns(request: HttpRequest, session: AgentSession, turn: int | None) -> TurnsPage:
    return turns_page(
        session=session,
        before=number_of(request, "before", maximum=session.turn_count),
        after=number_of(request, "after", maximum=session.turn_count),
        around=turn,
        part=MESSAGES_SHOWN,
        position=number_of(request, "message") or 0,
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
