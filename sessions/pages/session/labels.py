"""Edit the title and tags of a session."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from sessions.models import AgentSession
from sessions.pages.access import Viewer, actor_of, with_writable_session
from sessions.services.sessions.labels import session_label

_MAX_TAGS = 50


@require_POST
@with_writable_session
def session_labels(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Replace the title and the comma-separated tags."""
    title, tags = (request.POST.get(name, "").replace("\0", "") for name in ("title", "tags"))
    session_label(session=session, title=title, tags=tags.split(",")[:_MAX_TAGS], actor=actor_of(request))
    messages.success(request, "Title and tags saved.")
    return redirect("session", slug=viewer.project.slug, id=session.pk)
