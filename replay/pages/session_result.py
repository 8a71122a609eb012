"""The result of one session of a run at one budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay.models import ReplayRun, ReplayTarget
from replay.selectors.results import ResultRow, TargetResult, result_rows, target_results
from replay.selectors.run_settings import limit_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """A policy's totals for one session, and its findings per call."""

    row: ResultRow
    found: TargetResult


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResult:
    """One session at one of the run's budgets. `limits` lists the labels of all budgets."""

    target: ReplayTarget
    limit: str
    limits: Sequence[str]
    policies: Sequence[PolicyResult]


def session_result(run: ReplayRun, target: ReplayTarget, *, limit: str) -> SessionResult:
    """Return the result at the budget with the label `limit`, or at the smallest budget if there is none."""
    limits = [limit_of(data).label for data in run.limits]
    chosen = limit if limit in limits else limits[-1]
    rows = {row.number: row for row in result_rows(run, target=target)}
    founds = target_results(run, session_id=target.session_id)
    return SessionResult(
        target=target,
        limit=chosen,
        limits=limits,
        policies=[
            PolicyResult(row=rows[found.setting], found=found)
            for found in founds
            if rows[found.setting].setting.limit.label == chosen
        ],
    )
