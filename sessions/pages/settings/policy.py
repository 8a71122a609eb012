"""The default policy of new sessions, with a preview on a stored session."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from accounts.services.projects import project_update
from compaction.policy import Policy
from sessions.models import AgentSession
from sessions.pages.access import Viewer, actor_of, session_of, viewer_of
from sessions.pages.settings.common import sent_by_owner, settings_page
from sessions.pages.settings.policy_form import PolicyForm
from sessions.services.compactions.planning import session_plan, view_load

#: A preview loads all messages of a session, so long sessions are not offered.
_MAX_MESSAGES = 3_000
_PREVIEW_SESSIONS = 20


@require_http_methods(["GET", "HEAD", "POST"])
def project_policy(request: HttpRequest, slug: str) -> HttpResponse:
    viewer, data = sent_by_owner(request, slug)
    form = PolicyForm(data, stored=viewer.project.default_policy)
    if not form.is_valid():
        return _page(request, viewer, form)
    policy = {**_hidden_settings(viewer, form), **form.policy}
    project_update(project=viewer.project, changes={"default_policy": policy}, actor=actor_of(request))
    messages.success(request, "Policy saved. It applies to new sessions; existing sessions keep theirs.")
    return redirect("settings_policy", slug=slug)


@require_safe
def policy_preview(request: HttpRequest, slug: str) -> HttpResponse:
    """Preview a compaction of a stored session under the form's policy. Writes nothing."""
    viewer = viewer_of(request, slug)
    form = PolicyForm(request.GET)
    context: dict[str, Any] = {"form": form, "viewer": viewer}
    session = _preview_session(viewer, request.GET.get("session", ""))
    if session is not None and form.is_valid():
        policy = Policy.from_json(form.policy)
        context |= {
            "session": session,
            "plan": session_plan(view_load(session, shortens=True), trigger="user", policy=policy),
        }
    return render(request, "settings/_policy_preview.html", context)


def _hidden_settings(viewer: Viewer, form: PolicyForm) -> dict[str, Any]:
    """Return the stored settings that the form does not contain. They are kept unless the preset changes."""
    stored = viewer.project.default_policy
    if stored.get("preset") != form.policy["preset"]:
        return {}
    return {name: value for name, value in stored.items() if not form.includes(name)}


def _preview_session(viewer: Viewer, id: str) -> AgentSession | None:
    try:
        session = session_of(viewer, UUID(id))
    except ValueError:
        return None
    return session if session.message_count <= _MAX_MESSAGES else None


def _page(request: HttpRequest, viewer: Viewer, form: PolicyForm) -> HttpResponse:
    sessions = AgentSession.objects.filter(
        project=viewer.project, message_count__gt=0, message_count__lte=_MAX_MESSAGES
    ).order_by("-last_active_at", "-id")[:_PREVIEW_SESSIONS]
    return settings_page(request, viewer, "policy.html", {"form": form, "sessions": sessions})
