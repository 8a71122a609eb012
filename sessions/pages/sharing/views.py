"""Links to read-only transcripts, and the transcripts that they show without a login."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from sessions.models import AgentSession
from sessions.pages.access import Viewer, actor_of, page, private, with_session, with_writable_session
from sessions.pages.settings.common import PlainForm
from sessions.pages.sharing.document import document_html
from sessions.pages.tabs import session_context
from sessions.selectors.sharing import links_active, shared_link
from sessions.services.sessions.sharing import (
    MOST_LINKS,
    SharingDisabled,
    TooManyLinks,
    link_create,
    link_revoke,
)

_DAYS = ((1, "1 day"), (7, "7 days"), (30, "30 days"), (90, "90 days"))


class ShareForm(PlainForm):
    days = forms.TypedChoiceField(label="Expires after", choices=_DAYS, coerce=int, initial=7)
    comments = forms.BooleanField(label="Include comments on turns", required=False)


@require_http_methods(["GET", "HEAD", "POST"])
@with_session
def session_share(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """List the links of a session, and create one."""
    if request.method != "POST":
        return _page(request, viewer, session, {"form": ShareForm()})
    if not viewer.may_write:
        raise PermissionDenied("Sharing sessions requires write access.")
    form = ShareForm(request.POST)
    if not form.is_valid():
        return _page(request, viewer, session, {"form": form})
    try:
        _, token = link_create(
            session=session,
            days=form.cleaned_data["days"],
            comments=form.cleaned_data["comments"],
            actor=actor_of(request),
        )
    except SharingDisabled:
        form.add_error(None, "Sharing is disabled in this project.")
    except TooManyLinks:
        form.add_error(None, f"A session has at most {MOST_LINKS} links. Revoke one first.")
    else:
        address = request.build_absolute_uri(reverse("shared_transcript", args=[token]))
        return _page(request, viewer, session, {"form": ShareForm(), "created": address})
    return _page(request, viewer, session, {"form": form})


@require_POST
@with_writable_session
def session_unshare(request: HttpRequest, viewer: Viewer, session: AgentSession, number: int) -> HttpResponse:
    link_revoke(link=get_object_or_404(session.shared_links, pk=number), actor=actor_of(request))
    messages.success(request, "Link revoked. It no longer works.")
    return redirect("session_share", slug=viewer.project.slug, id=session.pk)


@require_safe
@login_not_required
def shared_transcript(request: HttpRequest, token: str) -> HttpResponseBase:
    """Show a shared session. An unknown token looks the same as an expired one."""
    link = shared_link(token)
    if link is None:
        return private(render(request, "sharing/ended.html", status=404))
    response = StreamingHttpResponse(
        document_html(link.session, is_download=False, has_comments=link.shows_comments)
    )
    response["X-Robots-Tag"] = "noindex, nofollow"
    response["Referrer-Policy"] = "no-referrer"
    return private(response)


def _page(
    request: HttpRequest, viewer: Viewer, session: AgentSession, context: dict[str, Any]
) -> HttpResponse:
    context |= {"links": links_active(session), **session_context(viewer, session, "session")}
    return page(request, "sharing/links.html", context)
