"""The page of a turn: new input, the prompt that the model saw, usage, cost, and a comparison of prompts."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from compaction.messages import Usage
from sessions.models import AgentSession, Compaction, Turn
from sessions.pages.access import Viewer, number_of, page_or_fragment, with_session
from sessions.pages.session.call_cost import cost_lines, cost_remainder
from sessions.pages.session.changes import changes_context
from sessions.pages.session.new_input import new_input_of
from sessions.pages.session.past_prompt import (
    new_input_start,
    outline_or_404,
    past_prompt_context,
    turn_missing,
)
from sessions.pages.tabs import session_context
from sessions.pages.turns import turn_view
from sessions.selectors import convert
from sessions.selectors.past_prompts.diff import outline_diff
from sessions.selectors.past_prompts.outline import Outline
from sessions.selectors.tools.runs import tool_runs_of_turn
from sessions.selectors.transcripts.pages import MESSAGES_SHOWN, turns_page


@require_safe
@with_session
def session_turn(request: HttpRequest, viewer: Viewer, session: AgentSession, turn: int) -> HttpResponse:
    if turn >= session.turn_count:
        return turn_missing(request, viewer, session, turn)
    outline = outline_or_404(session, turn)
    if outline.turn is None:
        raise Http404("The turn was deleted")
    context = past_prompt_context(request, viewer, session, outline)
    context |= session_context(viewer, session, "session")
    context |= _about(session, outline, outline.turn)
    return page_or_fragment(request, "sessions/turn/turn.html", "sessions/past_prompt/_prompt.html", context)


@require_safe
@with_session
def session_turn_diff(request: HttpRequest, viewer: Viewer, session: AgentSession, turn: int) -> HttpResponse:
    """Compare the prompt of this turn with that of another turn (query parameter `turn`).

    Query parameter `view`: `table` lists the messages that differ instead of comparing their texts.
    """
    if turn > session.turn_count:
        return turn_missing(request, viewer, session, turn)
    this = outline_or_404(session, turn)
    other = number_of(request, "turn") if "turn" in request.GET else max(turn - 1, 0)
    context = session_context(viewer, session, "session")
    context |= {"turn_index": turn, "other": other, "last_turn": session.turn_count - 1}
    if other is None or other > session.turn_count:
        return page_or_fragment(
            request, "sessions/turn/diff_missing.html", "sessions/turn/_missing.html", context
        )
    that = outline_or_404(session, other)
    before, after = sorted((this, that), key=lambda outline: outline.index)
    context |= {"before": before, "after": after}
    if request.GET.get("view") == "table":
        context |= {"view": "table", "difference": outline_diff(before, after)}
    else:
        context |= changes_context(request, session, before, after)
    for view in ("side", "unified", "table"):
        context[f"{view}_query"] = urlencode({"turn": other, "view": view})
    return page_or_fragment(request, "sessions/diff/turns.html", "sessions/diff/_changes.html", context)


def _about(session: AgentSession, outline: Outline, turn: Turn) -> dict[str, Any]:
    usage = convert.usage_of(turn)
    page = turns_page(session=session, after=turn.index - 1, limit=1, part=MESSAGES_SHOWN)
    lines = cost_lines(turn.model or session.model, usage, turn.at) if usage else []
    return {
        "turn": turn,
        "shown": turn_view(session, page),
        "new_input": new_input_of(session, outline, new_input_start(session, outline)),
        "compactions": _compactions_before(session, turn),
        "usage": usage,
        "tool_runs": tool_runs_of_turn(session=session, turn=turn),
        "cost_lines": lines,
        "cost_remainder": cost_remainder(lines, turn.cost_microusd),
        "cached": _cached_share(usage),
        "previous_turn": turn.index - 1 if turn.index else None,
        "next_turn": turn.index + 1 if turn.index + 1 < session.turn_count else None,
        "compared_turn": turn.index - 1 if turn.index else 1,
        "last_turn": session.turn_count - 1,
    }


def _compactions_before(session: AgentSession, turn: Turn) -> list[Compaction]:
    """Return the compactions between the previous call and this one."""
    rows = session.compactions.filter(turn_index=turn.index - 1, state__in=Compaction.APPLIED)
    return list(rows.order_by("number")) if turn.index and session.compaction_count else []


def _cached_share(usage: Usage | None) -> tuple[int, int] | None:
    """Return the cached and the total input tokens of a call."""
    return (usage.cache_read_tokens, usage.input_tokens) if usage and usage.input_tokens else None
