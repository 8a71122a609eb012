"""The search page of a project: hits grouped by session, with facets."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from sessions.models import AgentSession
from sessions.pages.access import Viewer, page_or_fragment, session_of, viewer_of
from sessions.pages.search.hits import HITS_PER_SESSION, facets_of, hits_by_session
from sessions.pages.zones import zone_of
from sessions.selectors.lookups import as_uuid
from sessions.selectors.search.request import search_expression
from sessions.selectors.search.results import MOST_HITS, search

#: Hits on the page for all sessions, and first hits on the page for one session, which can show all.
HITS, FIRST_HITS = 100, 50
MAX_LENGTH = 500


@require_safe
def search_page(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request, slug)
    text = request.GET.get("q", "")[:MAX_LENGTH].replace("\0", "").strip()
    session = _session(request, viewer)
    context: dict[str, Any] = {"viewer": viewer, "text": text, "session": session, "searched": False}
    limit = HITS if session is None else MOST_HITS if request.GET.get("all") == "1" else FIRST_HITS
    context |= _results(viewer, text, session, zone_of(request), limit)
    return page_or_fragment(request, "search/page.html", "search/_found.html", context)


def _session(request: HttpRequest, viewer: Viewer) -> AgentSession | None:
    """Return the session in which to search, None for all. Raises Http404 if it is not in the project."""
    id = as_uuid(request.GET.get("session", ""))
    return session_of(viewer, id) if id is not None else None


def _results(
    viewer: Viewer, text: str, session: AgentSession | None, zone: tzinfo, limit: int
) -> dict[str, Any]:
    expression = search_expression(text, zone=zone)
    request = expression.request(viewer.project.pk, session_id=session.pk if session else None)
    found: dict[str, Any] = {"problems": expression.problems}
    if request.is_empty:
        return found
    page = search(request, limit=limit)
    shown = limit if session else HITS_PER_SESSION
    return found | {
        "searched": True,
        "count": len(page.hits),
        "has_more": page.has_more,
        "groups": hits_by_session(viewer.project.slug, page.hits, most=shown),
        "facets": facets_of(text, page.hits),
    }
