"""Edit the title, tags and notes of a session, and star it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from sessions.models import AgentSession
from sessions.pages.access import Viewer, actor_of, with_session, with_writable_session
from sessions.services.sessions.labels import session_label, session_star

_MAX_TAGS = 50


@require_POST
@with_writable_session
def session_labels(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Replace those of the title, the comma-separated tags and the notes that the user has changed.

    The others may have been changed by another user after the form was opened.
    """
    title, tags, notes = (_changed(request, name) for name in ("title", "tags", "notes"))
    session_label(
        session=session,
        title=title,
        tags=None if tags is None else tags.split(",")[:_MAX_TAGS],
        notes=notes,
        actor=actor_of(request),
    )
    messages.success(request, "Title, tags and notes saved.")
    return redirect("session", slug=viewer.project.slug, id=session.pk)


def _changed(request: HttpRequest, name: str) -> str | None:
    """Return the value of a field, or None if it is the one that the form was opened with (`was_…`)."""
    value, before = (_posted(request, each) for each in (name, f"was_{name}"))
    return None if value == before else value


def _posted(request: HttpRequest, name: str) -> str | None:
    value = request.POST.get(name)
    return None if value is None else value.replace("\0", "").replace("\r\n", "\n")


@require_POST
@with_session
def session_star_change(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Star the session for the user (`starred=1`), or remove the star."""
    session_star(session=session, user_id=viewer.user_id, starred=request.POST.get("starred") == "1")
    return redirect("session", slug=viewer.project.slug, id=session.pk)
