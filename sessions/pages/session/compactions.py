"""The compactions of a session: the list, which looks again by itself, and what a member may do."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from redaction import redact
from sessions.models import AgentSession
from sessions.pages.access import (
    Viewer,
    actor_of,
    number_of,
    page_or_fragment,
    session_of,
    viewer_of,
    wants_fragment,
)
from sessions.pages.tabs import session_context
from sessions.selectors.compactions import compactions_newest
from sessions.selectors.redaction import redaction_of
from sessions.services.compactions.apply import CompactionOpen, NotRevertible, compaction_revert
from sessions.services.compactions.planning import session_plan, view_load
from sessions.services.compactions.triggers import compaction_ask

#: Characters of the instructions of a compaction.
_LONGEST = 4_000

_PAGE, _FRAGMENT = "sessions/compactions.html", "sessions/_compactions.html"


@require_safe
def session_compactions(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    viewer = viewer_of(request, slug)
    return _list(request, viewer, session_of(viewer, id))


@require_safe
def session_compact_preview(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """What a compaction would do now. Writes nothing."""
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    made = session_plan(view_load(session), trigger="user")
    context = session_context(viewer, session, "session_compactions") | {"made": made, "record": made.record}
    return page_or_fragment(
        request, "sessions/compact_preview.html", "sessions/_compact_preview.html", context
    )


@require_POST
def session_compact(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    viewer, session = writer_of(request, slug, id)
    instructions = request.POST.get("instructions", "")[:_LONGEST].replace("\0", "")
    clean, _ = redact(instructions, key=redaction_of(viewer.project))
    try:
        compaction_ask(session=session, reason="asked for on the page", instructions=clean)
    except CompactionOpen:
        return _answer(request, viewer, session, "A compaction is under way; wait for its end.")
    return _answer(request, viewer, session)


@require_POST
def session_revert(request: HttpRequest, slug: str, id: UUID, number: int) -> HttpResponse:
    viewer, session = writer_of(request, slug, id)
    try:
        compaction_revert(session=session, number=min(number, 2**31 - 1), actor=actor_of(request))
    except NotRevertible as error:
        return _answer(request, viewer, session, f"Not reverted: {error}.")
    return _answer(request, viewer, session)


def writer_of(request: HttpRequest, slug: str, id: UUID) -> tuple[Viewer, AgentSession]:
    """Viewer and session for somebody who may change it. Raises PermissionDenied for others."""
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    if not viewer.may_write:
        raise PermissionDenied("Only members who may write can compact.")
    return viewer, session


def _answer(request: HttpRequest, viewer: Viewer, session: AgentSession, problem: str = "") -> HttpResponse:
    """The list as it is now; without htmx, back to the tab."""
    if wants_fragment(request):
        return _list(request, viewer, session, problem)
    if problem:
        messages.error(request, problem)
    return redirect("session_compactions", slug=viewer.project.slug, id=session.pk)


def _list(request: HttpRequest, viewer: Viewer, session: AgentSession, problem: str = "") -> HttpResponse:
    context = session_context(viewer, session, "session_compactions")
    before = number_of(request, "before")
    found = compactions_newest(session=session, before=before)
    context |= {
        "compactions": found,
        "has_reasons": any(row.reason for row in found.rows),
        "problem": problem,
        "is_older": before is not None,
    }
    return page_or_fragment(request, _PAGE, _FRAGMENT, context)
