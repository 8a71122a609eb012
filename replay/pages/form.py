"""What is asked for when a replay is started."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User

from accounts.models import Project
from compaction.policy import PRESETS, get_policy
from compaction.replay import Limit
from replay.models import ReplayRun
from replay.services.runs import MAX_SESSIONS, RunRefused, run_create
from sessions.models import AgentSession

_RATIOS = [("1.0", "1.00"), ("0.5", "0.50"), ("0.35", "0.35"), ("0.2", "0.20")]


class ReplayForm(forms.Form):
    """Policies, budgets, and whether a model summarises. `run` starts what was asked for."""

    policies = forms.MultipleChoiceField(
        choices=[(name, name) for name in PRESETS],
        initial=list(PRESETS),
        widget=forms.CheckboxSelectMultiple,
    )
    ratios = forms.MultipleChoiceField(
        choices=_RATIOS,
        initial=["1.0", "0.5", "0.2"],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    budget = forms.IntegerField(min_value=1, max_value=100_000_000, required=False)
    with_model = forms.BooleanField(required=False)

    def run(self, project: Project, sessions: list[AgentSession], user: User) -> ReplayRun | None:
        """The run; None where it cannot be, which the form then says."""
        data = self.cleaned_data
        limits = [Limit(ratio=float(ratio)) for ratio in data["ratios"]]
        if data["budget"]:
            limits.append(Limit(tokens=data["budget"]))
        try:
            return run_create(
                project=project,
                sessions=sessions,
                policies=[get_policy(name) for name in data["policies"]],
                limits=limits,
                with_model=data["with_model"],
                title=self.title(sessions),
                user=user,
            )
        except RunRefused as error:
            self.add_error(None, f"Not started: {error}.")
            return None

    def title(self, sessions: list[AgentSession]) -> str:
        """What the run is called in the list."""
        if len(sessions) == 1:
            return str(sessions[0])[:200]
        chosen = self.data.get("agent", "").replace("\0", "")
        return f"the newest {len(sessions)} sessions{f' of {chosen}' if chosen else ''}"[:200]


class ProjectReplayForm(ReplayForm):
    """The same for the newest sessions of a project."""

    count = forms.IntegerField(min_value=1, max_value=MAX_SESSIONS, initial=20)
    agent = forms.CharField(max_length=100, required=False)

    def clean_agent(self) -> Any:
        return self.cleaned_data["agent"].strip()
