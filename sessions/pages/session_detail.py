"""One session: its figures, its chart, and its transcript, a page of turns at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from compaction.meter import Slope
from sessions import convert
from sessions.charts.prompt_sizes import PromptSize, columns, downsample
from sessions.charts.slope import slope_of
from sessions.models import AgentSession, Message
from sessions.pages.access import page_or_fragment, session_of, viewer_of, wants_fragment
from sessions.pages.blocks import part_text
from sessions.pages.limits import Limit, limit_of
from sessions.pages.tabs import session_context
from sessions.pages.text import visible
from sessions.pages.turns import shown_turns
from sessions.selectors.charts import chart_points, own_compactions
from sessions.selectors.sessions import session_children
from sessions.selectors.transcript import TurnsPage, message_get, turns_page

#: The verdict looks at this many of the newest turns.
SLOPE_TURNS = 200
#: Rows of the chart's table: enough to follow the shape, few enough to listen to.
TABLE_ROWS = 200
#: Characters of a folded text that one request fetches.
TEXT_PAGE = 200_000


@require_safe
def session_detail(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """The page; for htmx, a page of its turns (`before`, `after` or `turn` in the address)."""
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    page = _turns(request, session)
    context: dict[str, Any] = {
        **session_context(viewer, session, "session"),
        "page": page,
        "turns": shown_turns(session, page),
        "part": _part(request),
        "at_turn": _number(request, "turn"),
        "last_turn": session.turn_count - 1,
    }
    if not wants_fragment(request):
        points = chart_points(session=session, last=SLOPE_TURNS)
        limit = limit_of(session)
        context |= {
            "children": session_children(session=session),
            "slope": _slope(points, limit),
        }
    return page_or_fragment(request, "sessions/detail.html", "sessions/_turns.html", context)


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


@require_safe
def session_text(request: HttpRequest, slug: str, id: UUID, position: int, part: int) -> HttpResponse:
    """The whole of a folded text: one part of one message, or one argument of a call, from `offset` on."""
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    argument = request.GET.get("argument")
    row = message_get(session=session, position=position)
    if row is None:
        raise Http404("no such message")
    text = _part_text(row, session.format, part, argument)
    offset = _number(request, "offset") or 0
    end = offset + TEXT_PAGE
    context = {
        "viewer": viewer,
        "session": session,
        "turn": row.turn_index,
        "position": position,
        "part": part,
        "argument": argument,
        "text": visible(text[offset:end]),
        "next_offset": end if end < len(text) else None,
        "left": max(len(text) - end, 0),
    }
    return page_or_fragment(request, "sessions/text.html", "sessions/_text.html", context)


def _slope(points: Sequence[PromptSize], limit: Limit | None) -> Slope | None:
    if limit is None:
        return slope_of(points, None)
    return slope_of(points, limit.tokens, is_held=limit.name == "budget")


def _turns(request: HttpRequest, session: AgentSession) -> TurnsPage:
    return turns_page(
        session=session,
        before=_number(request, "before", most=session.turn_count),
        after=_number(request, "after", most=session.turn_count),
        around=_number(request, "turn", most=max(session.turn_count - 1, 0)),
    )


def _part(request: HttpRequest) -> str:
    """Which neighbour a fragment continues: it is put in where the link to it stood."""
    if not wants_fragment(request):
        return ""
    return "older" if "before" in request.GET else "newer" if "after" in request.GET else ""


def _number(request: HttpRequest, name: str, most: int = 2_000_000_000) -> int | None:
    """A number of the address, at most `most`; None where it is missing or no number."""
    text = request.GET.get(name, "")
    return min(int(text), most) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _part_text(row: Message, format: str, part: int, argument: str | None) -> str:
    parts = convert.message_value(row, format).parts
    text = part_text(parts[part], argument) if part < len(parts) else None
    if text is None:
        raise Http404("no such text")
    return text
