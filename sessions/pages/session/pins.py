"""Pinning messages on the pages of a session."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from sessions.models import AgentSession
from sessions.pages.access import Viewer, actor_of, page, wants_fragment, with_writable_session
from sessions.pages.blocks import pin_text
from sessions.selectors.pins import pin_at
from sessions.services.sessions.pins import message_pin


@require_POST
@with_writable_session
def session_pin(request: HttpRequest, viewer: Viewer, session: AgentSession, position: int) -> HttpResponse:
    """Pin or unpin a message, and render the button again; without htmx, show the message."""
    is_pinned = request.POST.get("pinned") == "1"
    if not message_pin(session=session, position=position, pinned=is_pinned, actor=actor_of(request)):
        raise Http404("Message not found")
    if not wants_fragment(request):
        address = reverse("session", args=[viewer.project.slug, session.pk])
        return redirect(f"{address}?message={position}#message-{position}")
    pin = pin_at(session, position)
    message = {"position": position, "pinned": pin_text(pin) if pin is not None else ""}
    context = {"viewer": viewer, "session": session, "message": message}
    return page(request, "sessions/_pin.html", context)
