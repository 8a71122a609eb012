"""One session: its figures, its chart, and its transcript, a page of turns at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from compaction.meter import Slope
from sessions.charts.prompt_sizes import PromptSize
from sessions.charts.slope import slope_of
from sessions.models import AgentSession, Message
from sessions.pages.access import number_of, page_or_fragment, session_of, viewer_of, wants_fragment
from sessions.pages.blocks import part_text
from sessions.pages.tabs import session_context
from sessions.pages.text import visible
from sessions.pages.turns import IDLE, shown_turns
from sessions.selectors import convert
from sessions.selectors.charts import chart_points
from sessions.selectors.expensive import expensive_calls
from sessions.selectors.jumps import largest_jumps
from sessions.selectors.sessions import session_children
from sessions.selectors.token_budgets import Limit, limit_of
from sessions.selectors.transcript import TurnsPage, message_get, turns_page

#: The verdict looks at this many of the newest turns.
SLOPE_TURNS = 200
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
        "at_turn": number_of(request, "turn"),
        "last_turn": session.turn_count - 1,
    }
    if not wants_fragment(request):
        points = chart_points(session=session, last=SLOPE_TURNS)
        limit = limit_of(session)
        context |= {
            "children": session_children(session=session),
            "slope": _slope(points, limit),
            "jumps": largest_jumps(session=session),
            "expensive": expensive_calls(session=session),
            "cache_life": IDLE,
        }
    return page_or_fragment(request, "sessions/detail.html", "sessions/_turns.html", context)


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
    offset = number_of(request, "offset") or 0
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
        before=number_of(request, "before", most=session.turn_count),
        after=number_of(request, "after", most=session.turn_count),
        around=_asked_turn(request, session),
    )


def _asked_turn(request: HttpRequest, session: AgentSession) -> int | None:
    """The turn in the address, or that of the message in it."""
    position = number_of(request, "message")
    if position is not None:
        return session.messages.filter(position=position).values_list("turn_index", flat=True).first()
    return number_of(request, "turn", most=max(session.turn_count - 1, 0))


def _part(request: HttpRequest) -> str:
    """Which neighbour a fragment continues: it is put in where the link to it stood."""
    if not wants_fragment(request):
        return ""
    return "older" if "before" in request.GET else "newer" if "after" in request.GET else ""


def _part_text(row: Message, format: str, part: int, argument: str | None) -> str:
    parts = convert.message_value(row, format).parts
    text = part_text(parts[part], argument) if part < len(parts) else None
    if text is None:
        raise Http404("no such text")
    return text
