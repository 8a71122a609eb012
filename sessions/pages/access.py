"""Who looks at a page, and at which project. Every page but log-in begins here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import F
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from accounts.models import Project, Role
from accounts.selectors import projects_of
from sessions.models import AgentSession
from sessions.selectors.sessions import session_get

Response = TypeVar("Response", bound=HttpResponseBase)


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """The user's projects, the one that is looked at, and what the user may do there.

    `may_write` is about sessions, `is_owner` about the project itself.
    """

    projects: Sequence[Project]
    project: Project
    may_write: bool
    is_owner: bool = False


def viewer_of(request: HttpRequest, slug: str) -> Viewer:
    """One query. Raises Http404 where the user is no member: what exists elsewhere is not told."""
    projects = list(projects_of(request.user).annotate(role=F("memberships__role")))
    for project in projects:
        if project.slug == slug:
            may_write = project.role in {Role.OWNER, Role.MEMBER}
            is_owner = project.role == Role.OWNER
            return Viewer(projects=projects, project=project, may_write=may_write, is_owner=is_owner)
    raise Http404("no such project")


def session_of(viewer: Viewer, id: UUID) -> AgentSession:
    """The session of the viewer's project. Raises Http404 for any other."""
    session = session_get(project=viewer.project, id=id)
    if session is None:
        raise Http404("no such session")
    return session


def wants_fragment(request: HttpRequest) -> bool:
    """Whether htmx asks for a part of the page; going back in the history asks for all of it."""
    htmx = request.htmx  # type: ignore[attr-defined]  # set by HtmxMiddleware
    return bool(htmx) and not htmx.history_restore_request


def page_or_fragment(request: HttpRequest, page: str, fragment: str, context: dict[str, Any]) -> HttpResponse:
    """One view, two renderings: `page` for a browser, `fragment` for htmx. Both are private."""
    response = render(request, fragment if wants_fragment(request) else page, context)
    patch_vary_headers(response, ["HX-Request"])
    return private(response)


def private(response: Response) -> Response:
    """Kept by nobody on its way: what it shows is its project's."""
    response["Cache-Control"] = "private, no-store"
    return response


def number_of(request: HttpRequest, name: str, most: int = 2_000_000_000) -> int | None:
    """A number of the address, at most `most`; None where it is missing or no number."""
    text = request.GET.get(name, "")
    return min(int(text), most) if text.isascii() and text.isdigit() and len(text) < 20 else None
