"""Forms that start a replay."""

from __future__ import annotations

from typing import Any

from django import forms

from accounts.actors import Actor
from accounts.models import Project
from compaction.policy import PRESETS, Policy, get_policy
from compaction.replay.setting import Limit
from replay.models import ReplayRun
from replay.services.runs import MAX_SESSIONS, InvalidRun, run_create
from sessions.models import AgentSession
from sessions.pages.settings.policy_form import PolicyForm

#: The name of the policy that is entered in the form.
_CUSTOM = "custom"
_RATIOS = [("1.0", "100%"), ("0.5", "50%"), ("0.35", "35%"), ("0.2", "20%")]


class ReplayForm(forms.Form):
    """The policies and budgets to replay, and whether a model writes the summaries.

    The custom policy is entered in a `PolicyForm`, which starts with the project's policy.
    """

    policies = forms.MultipleChoiceField(
        choices=[(name, name) for name in PRESETS],
        initial=list(PRESETS),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    ratios = forms.MultipleChoiceField(
        choices=_RATIOS,
        initial=["1.0", "0.5", "0.2"],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    budget = forms.IntegerField(
        label="Fixed budget",
        min_value=1,
        max_value=100_000_000,
        required=False,
        error_messages={"min_value": "Enter at least 1 token."},
    )
    with_model = forms.BooleanField(required=False)
    use_custom = forms.BooleanField(required=False)

    def __init__(self, data: Any = None, *, project: Project) -> None:
        super().__init__(data)
        self.custom = PolicyForm(data, stored=project.default_policy)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        self.chosen = [get_policy(name) for name in data.get("policies", ())]
        if data.get("use_custom"):
            if self.custom.is_valid():
                self.chosen.append(Policy.from_json({**self.custom.policy, "name": _CUSTOM}))
            else:
                self.add_error(None, "The custom policy is not valid.")
        return data

    def run(self, project: Project, sessions: list[AgentSession], actor: Actor) -> ReplayRun | None:
        """Start the run. Returns None and adds a form error if it cannot start."""
        data = self.cleaned_data
        limits = [Limit(ratio=float(ratio)) for ratio in data["ratios"]]
        if data["budget"]:
            limits.append(Limit(tokens=data["budget"]))
        try:
            return run_create(
                project=project,
                sessions=sessions,
                policies=self.chosen,
                limits=limits,
                with_model=data["with_model"],
                title=self.title(sessions),
                actor=actor,
            )
        except InvalidRun as error:
            self.add_error(None, f"The replay was not started: {error}.")
            return None

    def title(self, sessions: list[AgentSession]) -> str:
        """Return the run's title in the list."""
        if len(sessions) == 1:
            return str(sessions[0])[:200]
        agent = self.data.get("agent", "").replace("\0", "")
        return f"Newest {len(sessions)} sessions{f' of {agent}' if agent else ''}"[:200]


class ProjectReplayForm(ReplayForm):
    """Replays the newest sessions of a project, optionally of one agent."""

    count = forms.IntegerField(
        label="Newest sessions",
        min_value=1,
        max_value=MAX_SESSIONS,
        initial=20,
        error_messages=dict.fromkeys(
            ("min_value", "max_value"), f"Enter a number of sessions from 1 to {MAX_SESSIONS:,}."
        ),
    )
    agent = forms.CharField(max_length=100, required=False)
