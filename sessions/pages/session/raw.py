"""What was pushed, byte for byte: the messages of a page of turns, and the session's own row."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from sessions.pages.access import number_of, page_or_fragment, private, session_of, viewer_of
from sessions.pages.tabs import session_context
from sessions.pages.text import visible
from sessions.selectors.convert import message_body, message_bytes
from sessions.selectors.raw import raw_messages
from sessions.selectors.transcript import message_get
from sessions.store import bodies

#: Characters of a message's JSON that the page shows; the address of the message has all of it.
SHOWN = 200_000


@require_safe
def session_raw(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """A page of messages, newest first; each is fetched when it is opened."""
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    context = session_context(viewer, session, "session_raw")
    context["page"] = raw_messages(session=session, before=number_of(request, "before"))
    context["about"] = {
        "id": str(session.pk),
        "external_id": session.external_id,
        "format": session.format,
        "origin": session.origin,
        "budget_tokens": session.budget_tokens,
        "context_window": session.context_window,
        "calibration": round(session.calibration, 4),
        "policy": visible(bodies.json_pretty(session.policy)),
        "metadata": visible(bodies.json_pretty(session.metadata)),
    }
    return page_or_fragment(request, "sessions/raw/raw.html", "sessions/raw/_messages.html", context)


@require_safe
def session_raw_message(request: HttpRequest, slug: str, id: UUID, position: int) -> HttpResponse:
    """One message: its bytes; for htmx, laid out for people."""
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    row = message_get(session=session, position=position)
    if row is None:
        raise Http404("no such message")
    if not request.headers.get("HX-Request"):
        return private(HttpResponse(message_bytes(row), content_type="application/json"))
    text = bodies.json_pretty(message_body(row))
    context = {"text": visible(text[:SHOWN]), "left": max(len(text) - SHOWN, 0)}
    return page_or_fragment(request, "sessions/raw/_message.html", "sessions/raw/_message.html", context)
