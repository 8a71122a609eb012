"""A turn on a page of its own: what entered, what the model saw, what the call cost, how prompts differ."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from compaction.messages import Usage
from sessions.models import AgentSession, Compaction, Turn
from sessions.pages.access import number_of, page_or_fragment, session_of, viewer_of
from sessions.pages.session.call_cost import cost_lines
from sessions.pages.session.entered import entered_of
from sessions.pages.session.seen import entered_from, outline_or_404, seen_context
from sessions.pages.tabs import session_context
from sessions.pages.turns import shown_turn
from sessions.selectors import convert
from sessions.selectors.past_prompts import Outline, outline_diff
from sessions.selectors.transcript import turns_page


@require_safe
def session_turn(request: HttpRequest, slug: str, id: UUID, turn: int) -> HttpResponse:
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    outline = outline_or_404(session, turn)
    if outline.turn is None:
        raise Http404("the turn has not come yet")
    context = seen_context(request, viewer, session, outline)
    context |= session_context(viewer, session, "session")
    context |= _about(session, outline, outline.turn)
    return page_or_fragment(request, "sessions/turn/turn.html", "sessions/seen/_seen.html", context)


@require_safe
def session_turn_diff(request: HttpRequest, slug: str, id: UUID, turn: int) -> HttpResponse:
    """The prompt of this turn against that of another one (`turn` in the address's query)."""
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    other = number_of(request, "turn", most=session.turn_count)
    if other is None:
        other = max(turn - 1, 0)
    before, after = (outline_or_404(session, index) for index in sorted((turn, other)))
    context = session_context(viewer, session, "session")
    context |= {
        "turn_index": turn,
        "other": other,
        "before": before,
        "after": after,
        "difference": outline_diff(before, after),
    }
    return page_or_fragment(request, "sessions/turn/diff.html", "sessions/turn/_diff.html", context)


def _about(session: AgentSession, outline: Outline, turn: Turn) -> dict[str, Any]:
    usage = convert.usage_of(turn)
    page = turns_page(session=session, after=turn.index - 1, limit=1)
    return {
        "turn": turn,
        "shown": shown_turn(session, page),
        "entered": entered_of(session, outline, entered_from(session, outline)),
        "compactions": _compactions_before(session, turn),
        "usage": usage,
        "cost_lines": cost_lines(turn.model or session.model, usage, turn.at) if usage else (),
        "cached": _cached_share(usage),
        "previous_turn": turn.index - 1 if turn.index else None,
        "next_turn": turn.index + 1 if turn.index + 1 < session.turn_count else None,
        "last_turn": session.turn_count - 1,
    }


def _compactions_before(session: AgentSession, turn: Turn) -> list[Compaction]:
    """The compactions of ours between the call before and this one."""
    rows = session.compactions.filter(turn_index=turn.index - 1, state__in=Compaction.APPLIED)
    return list(rows.order_by("number")) if turn.index and session.compaction_count else []


def _cached_share(usage: Usage | None) -> tuple[int, int] | None:
    """Tokens that the provider's cache served, of those that the call read."""
    return (usage.cache_read_tokens, usage.prompt_tokens) if usage and usage.prompt_tokens else None
