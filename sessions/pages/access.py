"""Access to pages: the logged-in user, the project and what the user may do there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.db.models import F
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme

from accounts.actors import Actor
from accounts.models import Project, Role
from accounts.selectors import projects_of
from sessions.models import AgentSession
from sessions.selectors.lists.sessions import session_get
from sessions.store.postgres import is_reference_lost

Response = TypeVar("Response", bound=HttpResponseBase)
Params = ParamSpec("Params")


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """The user's projects, the current one and the user's permissions in it.

    `may_write` covers sessions; `is_owner` covers the project's settings. `user_id` is the user's key.
    """

    projects: Sequence[Project]
    project: Project
    may_write: bool
    is_owner: bool = False
    user_id: int


def viewer_of(request: HttpRequest, slug: str) -> Viewer:
    """Return the viewer of a project in one query. Raises Http404 if the user is not a member.

    A project that the user cannot see looks the same as one that does not exist.
    """
    projects = list(projects_of(request.user).annotate(role=F("memberships__role")))
    for project in projects:
        if project.slug == slug:
            may_write = project.role in {Role.OWNER, Role.MEMBER}
            is_owner = project.role == Role.OWNER
            return Viewer(
                projects=projects,
                project=project,
                may_write=may_write,
                is_owner=is_owner,
                user_id=user_of(request).pk,
            )
    raise Http404("Project not found")


def writer_of(request: HttpRequest, slug: str, *, action: str) -> Viewer:
    """Return a viewer with write access. Raises Http404 for non-members, PermissionDenied for read-only ones.

    `action` completes the error message, for example, "start a replay".
    """
    viewer = viewer_of(request, slug)
    if not viewer.may_write:
        raise PermissionDenied(f"Only members with write access can {action}.")
    return viewer


def owner_of(request: HttpRequest, slug: str) -> Viewer:
    """Return a viewer who owns the project. Raises Http404 for non-members, PermissionDenied for others."""
    viewer = viewer_of(request, slug)
    if not viewer.is_owner:
        raise PermissionDenied("Only project owners can change these settings.")
    return viewer


def user_of(request: HttpRequest) -> User:
    """Return the logged-in user. Middleware guarantees that every page except the login has one."""
    user = request.user
    assert isinstance(user, User)
    return user


def actor_of(request: HttpRequest) -> Actor:
    """Return the logged-in user as the actor of a change."""
    return Actor(user=user_of(request))


def session_of(viewer: Viewer, id: UUID) -> AgentSession:
    """Return a session of the viewer's project. Raises Http404 for any other."""
    session = session_get(project=viewer.project, id=id, user_id=viewer.user_id)
    if session is None:
        raise Http404("Session not found")
    session.project = viewer.project
    return session


def wants_fragment(request: HttpRequest) -> bool:
    """Return whether htmx requests part of a page. Going back in the history requests all of it."""
    htmx = request.htmx  # type: ignore[attr-defined]  # set by HtmxMiddleware
    return bool(htmx) and not htmx.history_restore_request


def page(request: HttpRequest, template: str, context: Mapping[str, Any]) -> HttpResponse:
    """Render a page that is not cached. The status is 422 if an invalid form was submitted."""
    forms = [value for value in context.values() if isinstance(value, BaseForm)]
    is_invalid = request.method == "POST" and any(form.errors for form in forms)
    return private(render(request, template, dict(context), status=422 if is_invalid else 200))


def page_or_fragment(
    request: HttpRequest, page: str, fragment: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """Render `page` for a browser request and `fragment` for htmx. Neither is cached."""
    response = render(request, fragment if wants_fragment(request) else page, context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return private(response)


def private(response: Response) -> Response:
    """Forbid browsers and proxies to cache a project's data."""
    response["Cache-Control"] = "private, no-store"
    return response


def with_session(
    view: Callable[Concatenate[HttpRequest, Viewer, AgentSession, Params], Response],
) -> Callable[..., Response]:
    """Pass the viewer and the session to a view instead of the project slug and session id of the URL.

    Raises `Http404` if the user is not a member of the project or the session does not exist.
    """

    @wraps(view)
    def wrapper(
        request: HttpRequest, slug: str, id: UUID, *args: Params.args, **kwargs: Params.kwargs
    ) -> Response:
        viewer = viewer_of(request, slug)
        try:
            return view(request, viewer, session_of(viewer, id), *args, **kwargs)
        except AgentSession.DoesNotExist:
            raise Http404("Session not found") from None  # deleted during the request
        except IntegrityError as error:
            if not is_reference_lost(error):
                raise
            raise Http404("Session not found") from None  # deleted before a row that refers to it was stored

    return wrapper


def with_writable_session(
    view: Callable[Concatenate[HttpRequest, Viewer, AgentSession, Params], Response],
) -> Callable[..., Response]:
    """Like `with_session`; raises `PermissionDenied` if the user may not write."""

    @wraps(view)
    def checked(
        request: HttpRequest,
        viewer: Viewer,
        session: AgentSession,
        /,
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Response:
        if not viewer.may_write:
            raise PermissionDenied("Changing sessions requires write access.")
        return view(request, viewer, session, *args, **kwargs)

    return with_session(checked)


def redirect_back(request: HttpRequest, default: str) -> HttpResponse:
    """Redirect to the page that contains the posted form, or to `default` if the browser does not name it."""
    page = request.headers.get("Referer", "")
    is_own = url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure())
    return redirect(page if is_own and urlsplit(page).path != request.path else default)


def number_of(request: HttpRequest, name: str, maximum: int = 2_000_000_000) -> int | None:
    """Return a number from the query string, at most `maximum`, or None if it is missing or invalid."""
    text = request.GET.get(name, "")
    return min(int(text), maximum) if text.isascii() and text.isdigit() and len(text) < 20 else None
