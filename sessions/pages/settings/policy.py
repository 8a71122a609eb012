"""The default policy of new sessions, with a preview on a stored session."""

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
from sessions.pages.access import Viewer, actor_of, owner_of, session_of, viewer_of
from sessions.pages.settings.common import PlainForm, settings_page
from sessions.pages.terms import preset_meaning
from sessions.services.compactions.planning import session_plan, view_load

#: A preview loads all messages of a session, so long sessions are not offered.
_MAX_MESSAGES = 3_000
_PREVIEW_SESSIONS = 20

#: The policy fields in the form and their help texts. The other fields are set over the API.
FORM_FIELDS: Mapping[str, str] = {
    "soft": "Share of the budget that starts a compaction in the background. 0 turns it off.",
    "hard": "Share of the budget that starts a compaction immediately. 0 turns it off.",
    "target": "Share of the budget that a compaction reduces the prompt to.",
    "tail_share": "Share of the budget that the most recent, unchanged messages may fill.",
    "tail_messages": "Minimum number of recent messages that stay unchanged.",
    "collapse_tokens": "Older tool outputs of at least this size become one line.",
    "clip_tokens": "Maximum size of a tool output.",
    "every_turns": "Also compacts each time this many turns were added. 0 turns it off.",
    "idle_seconds": "Also compacts after this many seconds without a turn. 0 turns it off.",
}


class PolicyForm(PlainForm):
    preset = forms.ChoiceField(
        choices=[(name, f"{name}: {preset_meaning(name)}") for name in PRESETS],
        help_text="Fields left blank use the preset's value.",
    )
    soft = forms.FloatField(required=False, label="Soft threshold")
    hard = forms.FloatField(required=False, label="Hard threshold")
    target = forms.FloatField(required=False, label="Target")
    tail_share = forms.FloatField(required=False, label="Recent messages (share)")
    tail_messages = forms.IntegerField(required=False, label="Recent messages (minimum)")
    collapse_tokens = forms.IntegerField(required=False, label="Collapse outputs (tokens)")
    clip_tokens = forms.IntegerField(required=False, label="Clip outputs (tokens)")
    every_turns = forms.IntegerField(required=False, label="Turn interval (turns)")
    idle_seconds = forms.IntegerField(required=False, label="Idle time (seconds)")

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        default = Policy()
        for name, help_text in FORM_FIELDS.items():
            self.fields[name].help_text = help_text
            self.fields[name].widget.attrs |= {"step": "any", "placeholder": getattr(default, name)}

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        entered = {name: value for name, value in data.items() if value is not None}
        try:
            Policy.from_json(entered)
        except PolicyError as error:
            self.add_error(error.field if error.field in self.fields else None, str(error))
        self.policy = entered
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
    policy = {**_hidden_settings(viewer, form.policy["preset"]), **form.policy}
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
            "plan": session_plan(view_load(session), trigger="user", policy=policy),
        }
    return render(request, "settings/_policy_preview.html", context)


def _stored(viewer: Viewer) -> Mapping[str, Any]:
    return viewer.project.default_policy or {"preset": "balanced"}


def _hidden_settings(viewer: Viewer, preset: str) -> dict[str, Any]:
    """Return the stored settings that are not in the form. They are kept unless the preset changes."""
    stored = _stored(viewer)
    if stored.get("preset") != preset:
        return {}
    return {name: value for name, value in stored.items() if name not in FORM_FIELDS}


def _preview_session(viewer: Viewer, id: str) -> AgentSession | None:
    try:
        session = session_of(viewer, UUID(id))
    except ValueError:
        return None
    return session if session.message_count <= _MAX_MESSAGES else None


def _page(request: HttpRequest, viewer: Viewer, form: PolicyForm, *, status: int = 200) -> HttpResponse:
    sessions = AgentSession.objects.filter(
        project=viewer.project, message_count__gt=0, message_count__lte=_MAX_MESSAGES
    ).order_by("-last_active_at", "-id")[:_PREVIEW_SESSIONS]
    return settings_page(request, viewer, "policy.html", {"form": form, "sessions": sessions}, status=status)
