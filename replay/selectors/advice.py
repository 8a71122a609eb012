"""Policy advice: the Pareto front of cost and lost references on a project's sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accounts.models import Project
from compaction.policy import Policy
from replay.models import ReplayRun
from replay.selectors.results import ResultRow, result_rows

#: Number of latest runs to consider.
_RECENT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The settings of one run at its most selective budget, and the recommended one.

    `off` is the result without compaction. `current` is the name of the project's current policy.
    """

    run: ReplayRun
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
    """Return advice from the newest completed run, preferably of several sessions, or None without a run."""
    recent = ReplayRun.objects.filter(project=project, state=ReplayRun.State.DONE).order_by("-pk")[:_RECENT]
    run = max(recent, key=lambda run: (run.sessions > 1, run.pk), default=None)
    return _advice(run, project) if run is not None else None


def _advice(run: ReplayRun, project: Project) -> Advice | None:
    rows = result_rows(run)
    limit = _most_selective_limit(rows)
    candidates = [row for row in rows if row.setting.limit.label == limit]
    best = sorted((row for row in candidates if row.on_limit_front), key=lambda row: row.cost)
    if not best:
        return None
    return Advice(
        run=run,
        limit=limit,
        front=best,
        others=[row for row in candidates if not row.on_limit_front and row.fits_share == 1],
        advised=min(best, key=_weighted_cost),
        off=next((row for row in candidates if row.setting.policy.name == "off"), None),
        current=_current(project),
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


def _current(project: Project) -> str:
    return Policy.from_json(project.default_policy or {"preset": "balanced"}).name
