"""Actions on the selected sessions of the list: tag, export and delete."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from sessions.models import AgentSession
from sessions.pages.access import Viewer, actor_of, page, writer_of
from sessions.pages.saved_queries import query_clean
from sessions.selectors.lists.filters import SessionFilter
from sessions.selectors.lists.sessions import session_children, sessions_list
from sessions.selectors.lookups import as_uuid
from sessions.services.sessions.labels import session_label
from sessions.services.sessions.lifecycle import session_delete

#: Maximum number of sessions that an action changes.
MOST = 200
_MAX_TAG = 100


def selected_ids(data: QueryDict) -> tuple[UUID, ...]:
    """Return the ids of the selected sessions, without invalid ones, at most `MOST`."""
    found = (as_uuid(text) for text in data.getlist("session")[:MOST])
    return tuple(dict.fromkeys(id for id in found if id is not None))


@require_POST
def sessions_bulk(request: HttpRequest, slug: str) -> HttpResponse:
    """Tag the selected sessions, or redirect to their export or to the page that deletes them."""
    viewer = writer_of(request, slug, action="change sessions")
    ids, action = selected_ids(request.POST), request.POST.get("action", "")
    back = f"{reverse('sessions', args=[slug])}?{query_clean(request.POST.get('query', ''))}"
    if not ids:
        messages.error(request, "Select at least one session.")
        return redirect(back)
    selection = urlencode([("session", str(id)) for id in ids])
    if action == "export":
        return redirect(f"{reverse('sessions_export', args=[slug])}?{selection}")
    if action == "delete":
        return redirect(f"{reverse('sessions_delete', args=[slug])}?{selection}")
    if action not in {"tag", "untag"}:
        raise Http404("Action not found")
    _tag(request, viewer, ids, is_removed=action == "untag")
    return redirect(back)


def _tag(request: HttpRequest, viewer: Viewer, ids: Sequence[UUID], *, is_removed: bool) -> None:
    tag = request.POST.get("tag", "").replace("\0", "").strip()[:_MAX_TAG]
    if not tag:
        messages.error(request, "Enter a tag.")
        return
    changed = 0
    for session in _sessions(viewer, ids):
        tags = [each for each in session.tags if each != tag] if is_removed else [*session.tags, tag]
        if is_removed == (tag in session.tags):
            session_label(session=session, tags=tags, actor=actor_of(request))
            changed += 1
    done = "Removed the tag from" if is_removed else "Tagged"
    messages.success(request, f"{done} {changed} session{pluralize(changed)}.")


@require_http_methods(["GET", "HEAD", "POST"])
def sessions_delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what will be deleted, and delete it on POST."""
    viewer = writer_of(request, slug, action="delete sessions")
    ids = selected_ids(request.POST if request.method == "POST" else request.GET)
    sessions = _sessions(viewer, ids)
    if not sessions:
        messages.error(request, "The selected sessions no longer exist.")
        return redirect("sessions", slug=slug)
    children = _children(sessions)
    if request.method == "POST":
        chosen = [*sessions, *(children if "sub_agents" in request.POST else ())]
        for session in chosen:
            session_delete(session=session, actor=actor_of(request))
        messages.success(request, f"Deleted {len(chosen)} session{pluralize(len(chosen))}.")
        return redirect("sessions", slug=slug)
    context = {
        "viewer": viewer,
        "sessions": sessions,
        "children": children,
        "message_count": sum(session.message_count for session in sessions),
    }
    return page(request, "sessions/delete.html", context)


def _children(sessions: Sequence[AgentSession]) -> list[AgentSession]:
    """Return the sub-agents of the sessions that are not among them."""
    found = (child for session in sessions for child in session_children(session=session))
    return [child for child in found if child not in sessions]


def _sessions(viewer: Viewer, ids: Sequence[UUID]) -> list[AgentSession]:
    if not ids:
        return []
    filters = SessionFilter(ids=tuple(ids))
    return [row.session for row in sessions_list(project=viewer.project, filters=filters, limit=MOST).rows]
