"""One session of a run under one budget: what its page and its chart show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay.models import ReplayRun, ReplayTarget
from replay.selectors.settings import limit_of
from replay.selectors.table import Found, Row, found_of, rows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A policy's row of one session, with what was found call by call."""

    row: Row
    found: Found


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSession:
    """One session under one of the run's budgets; `limits` are all of them."""

    target: ReplayTarget
    limit: str
    limits: Sequence[str]
    policies: Sequence[Shown]


def shown_session(run: ReplayRun, target: ReplayTarget, *, limit: str) -> ShownSession:
    """`limit` is a budget's label; the smallest budget where it is none of the run's."""
    limits = [limit_of(data).label for data in run.limits]
    wanted = limit if limit in limits else limits[-1]
    rows = {row.number: row for row in rows_of(run, target=target)}
    founds = found_of(run, session_id=target.session_id)
    return ShownSession(
        target=target,
        limit=wanted,
        limits=limits,
        policies=[
            Shown(row=rows[found.setting], found=found)
            for found in founds
            if rows[found.setting].setting.limit.label == wanted
        ],
    )
