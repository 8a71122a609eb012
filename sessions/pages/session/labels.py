"""Edit the title, tags and notes of a session, and star it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from sessions.models import AgentSession
from sessions.pages.access import (
    Viewer,
    actor_of,
    redirect_back,
    with_session,
    with_writable_session,
)
from sessions.pages.tabs import session_context
from sessions.services.sessions.labels import LabelsChanged, session_label, session_star

_MAX_TAGS = 50
_FIELDS = ("title", "tags", "notes")


@require_POST
@with_writable_session
def session_labels(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Save the title, the comma-separated tags and the notes, each only if the user has changed it.

    Another user may have changed the others since the form was opened with the values `was_…`. If another
    user has changed the same field, shows the form again.
    """
    posted = {name: _posted(request, name) for name in _FIELDS}
    opened = {name: _posted(request, f"was_{name}") for name in _FIELDS}
    title, tags, notes = (None if posted[name] == opened[name] else posted[name] for name in _FIELDS)
    try:
        session_label(
            session=session,
            title=title,
            tags=None if tags is None else tags.split(",")[:_MAX_TAGS],
            notes=notes,
            replaces={name: value for name, value in opened.items() if value is not None},
            actor=actor_of(request),
        )
    except LabelsChanged as error:
        context = session_context(viewer, session, "session") | {"changed": error.names, "posted": posted}
        return render(request, "sessions/labels_changed.html", context, status=409)
    messages.success(request, "Title, tags and notes saved.")
    return _to_tab(request, viewer, session)


def _posted(request: HttpRequest, name: str) -> str | None:
    value = request.POST.get(name)
    return None if value is None else value.replace("\0", "").replace("\r\n", "\n")


@require_POST
@with_session
def session_star_change(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Star the session for the user (`starred=1`), or remove the star."""
    session_star(session=session, user_id=viewer.user_id, starred=request.POST.get("starred") == "1")
    return _to_tab(request, viewer, session)


def _to_tab(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Redirect to the tab with the form: all tabs of a session have it."""
    return redirect_back(request, reverse("session", args=[viewer.project.slug, session.pk]))
