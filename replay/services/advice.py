"""Which policy suits a project: the Pareto front of cost and lost references over its own sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from accounts.actors import Actor
from accounts.models import Project
from accounts.services import audit_record, project_update
from compaction.policy import PRESETS, Policy
from replay.models import ReplayRun
from replay.selectors.table import Row, rows_of, run_find

#: Runs that are looked through for one that advice can be made of.
_RECENT = 20


class NoSuchChoice(ValueError):
    """The run has no such setting, or not one that advice may offer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The front of one run at its smallest budget that `off` does not fit, and which of it is advised.

    `off` is what showing everything would cost. `current` is the name of the project's policy now.
    """

    run: ReplayRun
    limit: str
    front: Sequence[Row]
    others: Sequence[Row]
    advised: Row
    off: Row | None
    current: str

    @property
    def choices(self) -> list[Row]:
        """All that fit: the front, cheapest first, then the others."""
        return [*self.front, *self.others]


def advice_of(project: Project) -> Advice | None:
    """From the newest run that is done; None where no run compares policies that fit."""
    recent = ReplayRun.objects.filter(project=project, state=ReplayRun.State.DONE).order_by("-pk")[:_RECENT]
    run = max(recent, key=lambda run: (run.sessions > 1, run.pk), default=None)
    return _advice(run, project) if run is not None else None


def _advice(run: ReplayRun, project: Project) -> Advice | None:
    rows = rows_of(run)
    limit = _telling_limit(rows)
    here = [row for row in rows if row.setting.limit.label == limit]
    best = sorted((row for row in here if row.on_limit_front), key=lambda row: row.cost)
    if not best:
        return None
    return Advice(
        run=run,
        limit=limit,
        front=best,
        others=[row for row in here if not row.on_limit_front and row.fits_share == 1],
        advised=min(best, key=_weighed),
        off=next((row for row in here if row.setting.policy.name == "off"), None),
        current=_current(project),
    )


def _telling_limit(rows: Sequence[Row]) -> str:
    """The budget at which policies differ most: the one that the fewest prompts of all rows fit."""
    fitting: dict[str, float] = {}
    for row in rows:
        label = row.setting.limit.label
        fitting[label] = min(fitting.get(label, 1.0), row.fits_share)
    return min(fitting, key=lambda label: fitting[label], default="")


def _weighed(row: Row) -> float:
    """A reference in a hundred that is lost weighs like a tenth more cost: an agent that lost something looks
    again, or errs."""
    return row.cost * (1 + 10 * row.lost)


def _current(project: Project) -> str:
    return Policy.from_json(project.default_policy or {"preset": "balanced"}).name


@transaction.atomic
def advice_apply(*, project: Project, run_id: UUID, setting: int, actor: Actor) -> Policy:
    """Makes the policy of a setting the project's own, for sessions to come. Raises `NoSuchChoice`."""
    run = run_find(project_id=project.pk, id=run_id)
    rows = rows_of(run) if run is not None else []
    row = next((row for row in rows if row.number == setting and row.fits_share == 1), None)
    if run is None or row is None:
        raise NoSuchChoice("there is no such choice")
    name = row.setting.policy.name
    chosen = Policy.from_json(next(stored for stored in run.policies if stored["name"] == name))
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
    """The policy as a project stores it: a preset's name, and what differs from it."""
    base = PRESETS.get(policy.name, PRESETS["balanced"])
    usual = base.to_json()
    differs = {name: value for name, value in policy.to_json().items() if value != usual[name]}
    return {"preset": base.name, **differs}
