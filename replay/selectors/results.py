"""The results of a run so far: sums for each setting, and the Pareto-optimal settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from uuid import UUID

from compaction.replay.costs import Billing, priced
from compaction.replay.pareto import front
from compaction.replay.prices import Prices
from compaction.replay.result import References, Result, Totals, totals
from compaction.replay.setting import Setting
from replay.models import ReplayResult, ReplayRun, ReplayTarget
from replay.selectors.run_settings import settings_of
from sessions.models import AgentSession


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """The sums of one setting over the completed sessions.

    `on_front` marks Pareto-optimal settings: no other setting whose prompts all fit is both at most as
    expensive and loses fewer references. `on_limit_front` compares only settings with the same limit.
    """

    number: int
    setting: Setting
    total: Totals
    summaries: int = 0
    on_front: bool = False
    on_limit_front: bool = False

    @property
    def cost(self) -> float:
        """Micro-dollars, 0 if unknown."""
        return float(self.total.cost or 0)

    @property
    def lost(self) -> float:
        """The share of the used references that were lost."""
        return self.total.references.lost / max(1, self.total.references.used)

    @property
    def kept_share(self) -> float | None:
        """The share of the used references that were kept, None if there are none."""
        return self._share(self.total.references.kept)

    @property
    def hidden_share(self) -> float | None:
        return self._share(self.total.references.recoverable)

    @property
    def lost_share(self) -> float | None:
        return self._share(self.total.references.lost)

    @property
    def found_share(self) -> float | None:
        """The share of the lost references that a search finds. None if none was searched for."""
        references = self.total.references
        return references.found / references.searched if references.searched else None

    @property
    def valid_share(self) -> float:
        return self.total.valid / max(1, self.total.calls)

    @property
    def fits_share(self) -> float:
        return self.total.fits / max(1, self.total.calls)

    @property
    def mean_prompt(self) -> int:
        return self.total.prompt_tokens // max(1, self.total.calls)

    def _share(self, references: int) -> float | None:
        return references / self.total.references.used if self.total.references.used else None


@dataclass(frozen=True, kw_only=True)
class TargetResult:
    """The result of one session under one setting.

    `budget_tokens` is the budget in provider tokens, None in results of earlier versions.
    """

    target: ReplayTarget
    setting: int
    result: Result
    budget_tokens: int | None

    @cached_property
    def lost_turn(self) -> int | None:
        """The first turn that lost a reference."""
        return self.result.first_lost.turn if self.result.first_lost else None


def run_find(*, project_id: UUID, id: UUID) -> ReplayRun | None:
    """Return a run of the project, or None if there is no such run."""
    return ReplayRun.objects.select_related("project").filter(project_id=project_id, pk=id).first()


def runs_newest(*, project_id: UUID, before: UUID | None = None, limit: int = 50) -> list[ReplayRun]:
    """Return the project's newest runs, newest first."""
    rows = ReplayRun.objects.filter(project_id=project_id)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return list(rows.order_by("-pk")[:limit])


def result_rows(
    run: ReplayRun, *, target: ReplayTarget | None = None, prices: Prices | None = None
) -> list[ResultRow]:
    """Return a row for each setting, over all sessions of the run or one of them.

    Each session has the prices of its model at its time. With `prices`, all are repriced, which reads the
    full results.
    """
    results = ReplayResult.objects.filter(target__run=run)
    if target is not None:
        results = results.filter(target=target)
    sums: dict[int, list[Totals]] = {}
    summaries: dict[int, int] = {}
    results = results.select_related("target") if prices else results.defer("body")
    for row in results.iterator(chunk_size=500):
        total = _repriced(row, prices) if prices is not None else totals_of(row.figures)
        sums.setdefault(row.setting, []).append(total)
        summaries[row.setting] = summaries.get(row.setting, 0) + row.summary_microusd
    rows = [
        ResultRow(
            number=number,
            setting=setting,
            total=totals(sums.get(number, ())),
            summaries=summaries.get(number, 0),
        )
        for number, setting in enumerate(settings_of(run))
    ]
    return _with_fronts(rows)


def totals_of(figures: dict[str, object]) -> Totals:
    """Return the sums that are stored with a result."""
    sums = dict(figures)
    references = sums.pop("references")
    assert isinstance(references, dict)
    return Totals(**sums, references=References(**references))  # type: ignore[arg-type]


def _repriced(row: ReplayResult, prices: Prices) -> Totals:
    result, target = Result.from_json(row.body), row.target
    share = target.written_share if target.written_share is not None else 1.0
    billing = Billing(written_share=share, one_hour=bool(target.one_hour_cache))
    return priced(result, (prices,) * result.calls, billing, summaries=row.summary_microusd)


def _with_fronts(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """Mark the Pareto-optimal rows among the settings whose prompts all fit and are valid."""
    usable = [row for row in rows if row.total.calls and row.total.fits == row.total.valid == row.total.calls]
    priced = [row for row in usable if row.total.cost is not None]
    best = {row.number for row in front(priced)}
    limits = {row.setting.limit for row in priced}
    here = {row.number for limit in limits for row in front([r for r in priced if r.setting.limit == limit])}
    return [replace(row, on_front=row.number in best, on_limit_front=row.number in here) for row in rows]


def target_results(run: ReplayRun, *, session_id: UUID) -> list[TargetResult]:
    """Return the results of one session in the order of the settings; empty if it is not in the run."""
    rows = ReplayResult.objects.filter(target__run=run, target__session_id=session_id)
    return [
        TargetResult(
            target=row.target,
            setting=row.setting,
            result=Result.from_json(row.body),
            budget_tokens=row.budget_tokens,
        )
        for row in rows.select_related("target").order_by("setting")
    ]


def targets_of(run: ReplayRun) -> list[ReplayTarget]:
    """Return the sessions of a run in their order."""
    return list(run.targets.select_related("session").order_by("ordinal"))


def targets_of_session(session: AgentSession) -> list[ReplayTarget]:
    """Return the ten newest runs that include a session, newest first."""
    return list(session.replay_targets.select_related("run").order_by("-run_id")[:10])


def sessions_newest(*, project_id: UUID, limit: int, agent: str = "", model: str = "") -> list[AgentSession]:
    """Return the newest sessions whose policy matters: the default selection of a run.

    Left out are sessions without messages, of which telemetry reported only usage, and those with one turn,
    such as an agent's requests for titles.
    """
    rows = AgentSession.objects.filter(project_id=project_id, turn_count__gt=1, message_count__gt=0)
    if agent:
        rows = rows.filter(agent=agent)
    if model:
        rows = rows.filter(model=model)
    return list(rows.order_by("-last_active_at", "-id")[:limit])
