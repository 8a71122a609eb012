"""Policy advice: the Pareto front of cost and lost references on a project's sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Min

from accounts.models import Project
from compaction.policy import Policy
from replay.models import ReplayRun
from replay.selectors.results import ResultRow, result_rows
from replay.selectors.run_settings import settings_of
from sessions.selectors.samples import sample_sessions

#: Number of latest runs to consider.
_RECENT = 20

#: Minimum number of sessions for a recommendation. With fewer, a single unusual session could decide it.
MIN_SESSIONS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The sessions that a run replayed without error, except those of the sample, and the run's budgets."""

    sessions: int
    first: datetime | None
    last: datetime | None
    limits: Sequence[str]

    @property
    def needed(self) -> int:
        """The number of further sessions needed for a recommendation."""
        return max(0, MIN_SESSIONS - self.sessions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A setting in which a policy differs from the current one."""

    name: str
    before: object
    after: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The settings of one run at its most selective budget, and the recommended one.

    `off` is the result without compaction. `current` is the name of the project's current policy.
    """

    run: ReplayRun
    basis: Basis
    limit: str
    front: Sequence[ResultRow]
    others: Sequence[ResultRow]
    advised: ResultRow
    off: ResultRow | None
    current: str

    @property
    def choices(self) -> list[ResultRow]:
        """All settings that fit: the Pareto-optimal ones, cheapest first, then the others."""
        return [*self.front, *self.others]


def advice_of(project: Project) -> Advice | None:
    """Return advice from the newest completed run, preferably one with enough sessions, or None."""
    recent = ReplayRun.objects.filter(project=project, state=ReplayRun.State.DONE).order_by("-pk")[:_RECENT]
    runs = list(recent)
    for run in runs:
        if run.sessions >= MIN_SESSIONS and not (basis := basis_of(run)).needed:
            return _advice(run, project, basis)
    return _advice(runs[0], project, basis_of(runs[0])) if runs else None


def basis_of(run: ReplayRun) -> Basis:
    """Return what a recommendation from this run is based on."""
    targets = run.targets.filter(error="").exclude(session__in=sample_sessions(run.project_id))
    span = targets.aggregate(first=Min("session__started_at"), last=Max("session__last_active_at"))
    limits = dict.fromkeys(setting.limit.label for setting in settings_of(run))
    return Basis(sessions=targets.count(), limits=list(limits), **span)


def policy_changes_of(project: Project, chosen: Policy) -> list[Change]:
    """Return the settings in which a policy differs from the project's current one."""
    before, after = _policy(project).to_json(), chosen.to_json()
    return [
        Change(name=name, before=before[name], after=value)
        for name, value in after.items()
        if name != "name" and value != before[name]
    ]


def _advice(run: ReplayRun, project: Project, basis: Basis) -> Advice | None:
    rows = result_rows(run)
    limit = _most_selective_limit(rows)
    candidates = [row for row in rows if row.setting.limit.label == limit]
    best = sorted((row for row in candidates if row.on_limit_front), key=lambda row: row.cost)
    if not best:
        return None
    return Advice(
        run=run,
        basis=basis,
        limit=limit,
        front=best,
        others=[row for row in candidates if not row.on_limit_front and row.fits_share == 1],
        advised=min(best, key=_weighted_cost),
        off=next((row for row in candidates if row.setting.policy.name == "off"), None),
        current=_policy(project).name,
    )


def _most_selective_limit(rows: Sequence[ResultRow]) -> str:
    """Return the budget at which policies differ most: the one that the fewest prompts fit."""
    fitting: dict[str, float] = {}
    for row in rows:
        label = row.setting.limit.label
        fitting[label] = min(fitting.get(label, 1.0), row.fits_share)
    return min(fitting, key=lambda label: fitting[label], default="")


def _weighted_cost(row: ResultRow) -> float:
    """Return the cost, increased by 10% for each 1% of lost references.

    An agent whose prompt has lost content reads it again or makes mistakes.
    """
    return row.cost * (1 + 10 * row.lost)


def _policy(project: Project) -> Policy:
    return Policy.from_json(project.default_policy)
