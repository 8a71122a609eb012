"""Set a project's policy from the results of a replay."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from django.db import transaction

from accounts.actors import Actor
from accounts.models import Project
from accounts.services.audit import audit_record
from accounts.services.projects import project_update
from compaction.policy import PRESETS, Policy
from replay.models import ReplayRun
from replay.selectors.advice import basis_of
from replay.selectors.results import ResultRow, result_rows, run_find


class NoSuchChoice(ValueError):
    """The run has no such setting, or its prompts do not all fit."""


class TooFewSessions(ValueError):
    """The run has too few sessions for a recommendation. `needed` is the number missing."""

    def __init__(self, needed: int) -> None:
        super().__init__(f"{needed} more sessions are needed")
        self.needed = needed


def advice_choice(*, project: Project, run_id: UUID, setting: int) -> tuple[ReplayRun, ResultRow, Policy]:
    """Return the run, the row and the policy of a setting. Raises `NoSuchChoice` or `TooFewSessions`."""
    run = run_find(project_id=project.pk, id=run_id)
    rows = result_rows(run) if run is not None else []
    row = next((row for row in rows if row.number == setting and row.fits_share == 1), None)
    if run is None or row is None:
        raise NoSuchChoice("the run has no such choice")
    if needed := basis_of(run).needed:
        raise TooFewSessions(needed)
    name = row.setting.policy.name
    policy = Policy.from_json(next(stored for stored in run.policies if stored["name"] == name))
    if not policy.summary_instructions:
        # A replay does not compare them, so a preset does not remove those of the project.
        current = Policy.from_json(project.default_policy)
        policy = replace(policy, summary_instructions=current.summary_instructions)
    return run, row, policy


@transaction.atomic
def advice_apply(*, project: Project, run_id: UUID, setting: int, actor: Actor) -> Policy:
    """Set the policy of a setting as the project's default for new sessions.

    Raises `NoSuchChoice` or `TooFewSessions`.
    """
    run, row, chosen = advice_choice(project=project, run_id=run_id, setting=setting)
    project_update(project=project, changes={"default_policy": _settings(chosen)}, actor=actor)
    audit_record(
        action="policy.advised",
        project=project,
        actor=actor,
        target=chosen.name,
        detail={
            "replay": str(run.pk),
            "budget": row.setting.limit.label,
            "sessions": row.total.sessions,
            "cost_microusd": row.total.cost,
            "lost": row.total.references.lost,
            "used": row.total.references.used,
        },
    )
    return chosen


def _settings(policy: Policy) -> dict[str, object]:
    """Return the policy as a project stores it: a preset's name and the differences from it."""
    base = PRESETS.get(policy.name, PRESETS["balanced"])
    defaults = base.to_json()
    changes = {name: value for name, value in policy.to_json().items() if value != defaults[name]}
    return {"preset": base.name, **changes}
