"""Show, add, edit and delete comments on turns."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from sessions.models import AgentSession, Comment
from sessions.pages.access import (
    Viewer,
    actor_of,
    private,
    wants_fragment,
    with_session,
    with_writable_session,
)
from sessions.selectors.comments import comments_on
from sessions.services.sessions.comments import (
    InvalidComment,
    comment_create,
    comment_delete,
    comment_edit,
)


@require_http_methods(["GET", "HEAD", "POST"])
@with_session
def turn_comments(request: HttpRequest, viewer: Viewer, session: AgentSession, turn: int) -> HttpResponse:
    """Show the comments on a turn with a form to add one. POST adds a comment."""
    get_object_or_404(session.turns.only("pk"), index=turn)
    if request.method != "POST":
        return _shown(request, viewer, session, turn, is_writing=True, is_autofocused=True)
    if not viewer.may_write:
        raise PermissionDenied("Commenting requires write access.")
    text = request.POST.get("text", "")
    try:
        comment_create(session=session, turn=turn, text=text, author_id=viewer.user_id)
    except InvalidComment as error:
        return _shown(request, viewer, session, turn, is_writing=True, draft=text, error=str(error))
    return _shown(request, viewer, session, turn)


@require_POST
@with_writable_session
def session_comment(request: HttpRequest, viewer: Viewer, session: AgentSession, number: int) -> HttpResponse:
    """Edit the user's own comment."""
    comment = _comment(session, number)
    if comment.author_id != viewer.user_id:
        raise PermissionDenied("Only the author of a comment can edit it.")
    try:
        comment_edit(comment=comment, text=request.POST.get("text", ""))
    except InvalidComment as error:
        return _shown(request, viewer, session, comment.turn, error=str(error))
    return _shown(request, viewer, session, comment.turn)


@require_POST
@with_writable_session
def session_comment_delete(
    request: HttpRequest, viewer: Viewer, session: AgentSession, number: int
) -> HttpResponse:
    """Delete a comment: the user's own, or any if the user owns the project."""
    comment = _comment(session, number)
    if comment.author_id != viewer.user_id and not viewer.is_owner:
        raise PermissionDenied("Only the author of a comment and project owners can delete it.")
    comment_delete(comment=comment, actor=actor_of(request))
    return _shown(request, viewer, session, comment.turn)


def _comment(session: AgentSession, number: int) -> Comment:
    return get_object_or_404(session.comments.select_related("author", "session"), pk=number)


def _shown(
    request: HttpRequest,
    viewer: Viewer,
    session: AgentSession,
    turn: int,
    *,
    error: str = "",
    **context: Any,
) -> HttpResponse:
    """Render the comments on a turn. Without htmx, redirect to the page of the turn."""
    if not wants_fragment(request) and not error:
        address = reverse("session_turn", args=[viewer.project.slug, session.pk, turn])
        return redirect(f"{address}#comments-{turn}")
    comments = comments_on(session=session, turns=[turn])
    context |= {"viewer": viewer, "session": session, "turn_index": turn, "error": error}
    context |= {"comments": comments.get(turn, ())}
    page = "sessions/_comments.html" if wants_fragment(request) else "sessions/comments.html"
    # htmx does not swap responses with an error status.
    status = 200 if wants_fragment(request) or not error else 422
    return private(render(request, page, context, status=status))
