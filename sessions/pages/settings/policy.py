"""The policy that new sessions of the project begin with, tried on a stored session before it is saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from accounts.services import project_update
from compaction.errors import PolicyError
from compaction.policy import PRESETS, Policy
from sessions.models import AgentSession
from sessions.pages.access import Viewer, session_of, viewer_of
from sessions.pages.settings.frame import PlainForm, owner_of, settings_page, user_of
from sessions.pages.terms import PRESETS as MEANINGS
from sessions.services.compactions.planning import session_plan, view_load

#: A preview loads all that a session shows; a longer one would hold the page up.
_MOST_MESSAGES = 3_000
_OFFERED_SESSIONS = 20

#: The settings that the form offers, each with what it means. All others stand in the API.
OFFERED: Mapping[str, str] = {
    "soft": "From this share of the budget on a compaction runs in the background; 0: never.",
    "hard": "From this share of the budget on a compaction runs at once; 0: never.",
    "target": "A compaction goes down to this share of the budget.",
    "tail_share": "Those that take this share of the budget stay untouched.",
    "tail_messages": "So many stay untouched in any case.",
    "collapse_tokens": "Older tool outputs of so many tokens become one line.",
    "clip_tokens": "Tool outputs keep at most so many tokens.",
    "every_turns": "Also compact every so many turns; 0: never.",
    "idle_seconds": "Also compact when idle for so many seconds; 0: never.",
}


class PolicyForm(PlainForm):
    preset = forms.ChoiceField(
        choices=[(name, f"{name}: {MEANINGS[name]}") for name in PRESETS],
        help_text="Where the settings begin; empty fields keep the preset's value.",
    )
    soft = forms.FloatField(required=False, label="Soft limit")
    hard = forms.FloatField(required=False, label="Hard limit")
    target = forms.FloatField(required=False)
    tail_share = forms.FloatField(required=False, label="Newest messages, share")
    tail_messages = forms.IntegerField(required=False, label="Newest messages, at least")
    collapse_tokens = forms.IntegerField(required=False, label="Collapse from (tokens)")
    clip_tokens = forms.IntegerField(required=False, label="Clip to (tokens)")
    every_turns = forms.IntegerField(required=False, label="Every so many turns")
    idle_seconds = forms.IntegerField(required=False, label="After a pause of (seconds)")

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        default = Policy()
        for name, meaning in OFFERED.items():
            self.fields[name].help_text = meaning
            self.fields[name].widget.attrs |= {"step": "any", "placeholder": getattr(default, name)}

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        told = {name: value for name, value in data.items() if value is not None}
        try:
            Policy.from_json(told)
        except PolicyError as error:
            self.add_error(error.field if error.field in self.fields else None, str(error))
        self.policy = told
        return data


@require_http_methods(["GET", "HEAD", "POST"])
def project_policy(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method != "POST":
        viewer = viewer_of(request, slug)
        return _page(request, viewer, PolicyForm(initial=_stored(viewer)))
    viewer = owner_of(request, slug)
    form = PolicyForm(request.POST)
    if not form.is_valid():
        return _page(request, viewer, form, status=422)
    policy = {**_unoffered(viewer, form.policy["preset"]), **form.policy}
    project_update(project=viewer.project, changes={"default_policy": policy}, user=user_of(request))
    messages.success(request, "New sessions begin with this policy. Those that are there keep theirs.")
    return redirect("settings_policy", slug=slug)


@require_safe
def policy_preview(request: HttpRequest, slug: str) -> HttpResponse:
    """What a compaction of a stored session would do now under the form's policy. Writes nothing."""
    viewer = viewer_of(request, slug)
    form = PolicyForm(request.GET)
    context: dict[str, Any] = {"form": form, "viewer": viewer}
    session = _chosen(viewer, request.GET.get("session", ""))
    if session is not None and form.is_valid():
        policy = Policy.from_json(form.policy)
        context |= {
            "session": session,
            "made": session_plan(view_load(session), trigger="user", policy=policy),
        }
    return render(request, "settings/_policy_preview.html", context)


def _stored(viewer: Viewer) -> Mapping[str, Any]:
    return viewer.project.default_policy or {"preset": "balanced"}


def _unoffered(viewer: Viewer, preset: str) -> dict[str, Any]:
    """Stored settings that the form does not show: they stay as long as the preset does."""
    stored = _stored(viewer)
    if stored.get("preset") != preset:
        return {}
    return {name: value for name, value in stored.items() if name not in OFFERED}


def _chosen(viewer: Viewer, id: str) -> AgentSession | None:
    try:
        session = session_of(viewer, UUID(id))
    except ValueError:
        return None
    return session if session.message_count <= _MOST_MESSAGES else None


def _page(request: HttpRequest, viewer: Viewer, form: PolicyForm, *, status: int = 200) -> HttpResponse:
    offered = AgentSession.objects.filter(
        project=viewer.project, message_count__gt=0, message_count__lte=_MOST_MESSAGES
    ).order_by("-last_active_at", "-id")[:_OFFERED_SESSIONS]
    return settings_page(request, viewer, "policy.html", {"form": form, "offered": offered}, status=status)
