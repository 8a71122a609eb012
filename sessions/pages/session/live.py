"""What has changed in a session since a page was loaded. Open pages request it every few seconds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from sessions.models import AgentSession, Comment
from sessions.pages.access import Viewer, private, session_of, viewer_of, with_session
from sessions.pages.session.shared_responses import CSRF_PLACEHOLDER, SharedResponses, with_csrf_token
from sessions.pages.session.tree import tree_context
from sessions.pages.tabs import session_context
from sessions.pages.turns import turn_views
from sessions.selectors.charts.expensive import estimated_outputs
from sessions.selectors.charts.stretches import largest_of
from sessions.selectors.live import LiveState, is_live, live_state
from sessions.selectors.savings import savings_of_session
from sessions.selectors.token_budgets import session_calibration
from sessions.selectors.transcripts.pages import MESSAGES_SHOWN, SHOWN, turns_page

#: The query parameters that the update depends on, apart from the known state.
_OPTIONS = ("tab", "append", "view")

_updates: SharedResponses[str] = SharedResponses()


@require_safe
def session_live(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """Return 204 if nothing has changed since `since`, otherwise the changed parts of the page.

    `append=1`: the transcript on the page ends with its newest turn, which new turns follow.
    `tab=memory`: the page shows the memory.
    """
    state = live_state(user=request.user, slug=slug, id=id)
    if state is None:
        raise Http404("Session not found")
    known = LiveState.decode(request.GET.get("since", ""))
    if state == known:
        return private(HttpResponse(status=204))
    viewer = viewer_of(request, slug)
    key = (id, state, known, viewer.may_write, _author(viewer, id, known), *map(request.GET.get, _OPTIONS))
    html = _updates.fetch(key, lambda: _update(request, viewer, id, state, known))
    return private(HttpResponse(with_csrf_token(request, html)))


def _author(viewer: Viewer, id: UUID, known: LiveState | None) -> int | None:
    """Return the viewer if the new turns have comments, which only their authors can change. One query."""
    turn = known.turns if known is not None else 0
    has_comments = Comment.objects.filter(session=id, turn__gte=turn).exists()
    return viewer.user_id if has_comments else None


def _update(request: HttpRequest, viewer: Viewer, id: UUID, state: LiveState, known: LiveState | None) -> str:
    session = session_of(viewer, id)
    state = replace(state, turns=session.turn_count, edits=session.edits_revision)
    tab = "session_memory" if request.GET.get("tab") == "memory" else "session"
    context = session_context(viewer, session, tab)
    context |= {"live": state, "is_update": True, "csrf_token": CSRF_PLACEHOLDER}
    if tab == "session":
        context |= _new(request, viewer, session, known)
    return render_to_string("sessions/_live.html", context, request)


@require_safe
@with_session
def session_health(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Return the health of a session, which a worker calculates: a page without it requests it repeatedly."""
    return private(render(request, "sessions/_health.html", {"viewer": viewer, "session": session}))


def live_context(request: HttpRequest, viewer: Viewer, session: AgentSession) -> dict[str, Any]:
    """Return the context with which a page updates itself, empty for an inactive session. One query."""
    if not is_live(session):
        return {}
    return {"live": live_state(user=request.user, slug=viewer.project.slug, id=session.pk)}


def _new(
    request: HttpRequest, viewer: Viewer, session: AgentSession, known: LiveState | None
) -> dict[str, Any]:
    context: dict[str, Any] = {
        "estimated_outputs": estimated_outputs(session=session, known=largest_of(session=session)),
        "calibration": session_calibration(session),
        "savings": savings_of_session(session),
        "last_turn": session.turn_count - 1,
        **tree_context(session),
    }
    if known is None or not known.turns < session.turn_count or request.GET.get("append") != "1":
        return context
    limit = min(SHOWN, session.turn_count - known.turns)
    page = turns_page(session=session, after=known.turns - 1, limit=limit, part=MESSAGES_SHOWN)
    is_plain = request.GET.get("view") == "text"
    return context | {
        "page": page,
        "turns": turn_views(session, page, is_plain=is_plain),
        "part": "newer",
        "view_query": "&view=text" if is_plain else "",
        "new_turns": len(page.turns),
    }
