"""Stored data as pushed: the session's fields and its messages, byte for byte."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from sessions.models import AgentSession
from sessions.pages.access import Viewer, number_of, page_or_fragment, private, with_session
from sessions.pages.tabs import session_context
from sessions.pages.text import visible
from sessions.selectors.convert import message_body, message_bytes
from sessions.selectors.token_budgets import calibration_json, session_calibration
from sessions.selectors.transcripts.pages import message_get, raw_messages
from sessions.store import bodies

#: Maximum length of a message's JSON on the page; its raw URL returns all of it.
MAX_LENGTH = 200_000


@require_safe
@with_session
def session_raw(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """List messages, newest first. The body of each is fetched when its row is opened."""
    context = session_context(viewer, session, "session_raw")
    calibration = calibration_json(session_calibration(session))
    context["page"] = raw_messages(session=session, before=number_of(request, "before"))
    context["about"] = {
        "id": str(session.pk),
        "external_id": session.external_id,
        "format": session.format,
        "origin": session.origin,
        "budget_tokens": session.budget_tokens,
        "context_window": session.context_window,
        "calibration": visible(bodies.json_pretty(calibration)),
        "policy": visible(bodies.json_pretty(session.policy)),
        "metadata": visible(bodies.json_pretty(session.metadata)),
    }
    return page_or_fragment(request, "sessions/raw/raw.html", "sessions/raw/_messages.html", context)


@require_safe
@with_session
def session_raw_message(
    request: HttpRequest, viewer: Viewer, session: AgentSession, position: int
) -> HttpResponse:
    """Return the raw bytes of a message; for htmx, as indented JSON."""
    row = message_get(session=session, position=position)
    if row is None:
        raise Http404("Message not found")
    if not request.headers.get("HX-Request"):
        return private(HttpResponse(message_bytes(row), content_type="application/json"))
    text = bodies.json_pretty(message_body(row))
    context = {"text": visible(text[:MAX_LENGTH]), "left": max(len(text) - MAX_LENGTH, 0)}
    return page_or_fragment(request, "sessions/raw/_message.html", "sessions/raw/_message.html", context)
