"""What a run has found so far: a row for each setting, and which of them nothing beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from uuid import UUID

from compaction.replay import Prices, References, Result, Setting, Totals, cost, front, totals
from replay.models import ReplayResult, ReplayRun, ReplayTarget
from replay.selectors.settings import settings_of
from sessions.models import AgentSession
from sessions.store import bodies


@dataclass(frozen=True, kw_only=True)
class Row:
    """One setting over the sessions that are done.

    `on_front`: no other setting whose prompts all fit costs as little and loses less; `on_limit_front`: none
    of the same budget.
    """

    number: int
    setting: Setting
    total: Totals
    summaries: int = 0
    on_front: bool = False
    on_limit_front: bool = False

    @property
    def cost(self) -> float:
        return float(self.total.cost or 0)

    @property
    def lost(self) -> float:
        """The share of the references that was lost."""
        return self.total.references.lost / max(1, self.total.references.used)

    @property
    def kept_share(self) -> float:
        return self.total.references.kept / max(1, self.total.references.used)

    @property
    def hidden_share(self) -> float:
        return self.total.references.recoverable / max(1, self.total.references.used)

    @property
    def valid_share(self) -> float:
        return self.total.valid / max(1, self.total.calls)

    @property
    def fits_share(self) -> float:
        return self.total.fits / max(1, self.total.calls)

    @property
    def mean_prompt(self) -> int:
        return self.total.prompt_tokens // max(1, self.total.calls)


@dataclass(frozen=True, kw_only=True)
class Found:
    """One result read back, with its session."""

    target: ReplayTarget
    setting: int
    result: Result

    @cached_property
    def lost_turn(self) -> int | None:
        """The first turn at which something needed was lost."""
        return self.result.first_lost.turn if self.result.first_lost else None


def run_find(*, project_id: UUID, id: UUID) -> ReplayRun | None:
    """The run of the project; None where it has no such run."""
    return ReplayRun.objects.select_related("project").filter(project_id=project_id, pk=id).first()


def runs_newest(*, project_id: UUID, before: UUID | None = None, limit: int = 50) -> list[ReplayRun]:
    rows = ReplayRun.objects.filter(project_id=project_id)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return list(rows.order_by("-pk")[:limit])


def rows_of(run: ReplayRun, *, target: ReplayTarget | None = None, prices: Prices | None = None) -> list[Row]:
    """A row for each setting, over all sessions of the run or one of them.

    Each session is priced as its own model was at its time; with `prices` all are priced anew by that table,
    which reads the curves of all results.
    """
    results = ReplayResult.objects.filter(target__run=run)
    if target is not None:
        results = results.filter(target=target)
    sums: dict[int, list[Totals]] = {}
    summaries: dict[int, int] = {}
    named = results.values_list("setting", "figures", "summary_microusd", "body" if prices else "setting")
    for setting, figures, paid, body in named.iterator(chunk_size=500):
        total = totals_of(figures)
        if prices is not None:
            total = _repriced(total, _result(body), prices, paid)
        sums.setdefault(setting, []).append(total)
        summaries[setting] = summaries.get(setting, 0) + paid
    rows = [
        Row(
            number=number,
            setting=setting,
            total=totals(sums.get(number, ())),
            summaries=summaries.get(number, 0),
        )
        for number, setting in enumerate(settings_of(run))
    ]
    return _marked(rows)


def totals_of(figures: dict[str, object]) -> Totals:
    """The sums that a result stores."""
    told = dict(figures)
    references = told.pop("references")
    assert isinstance(references, dict)
    return Totals(**told, references=References(**references))  # type: ignore[arg-type]


def _repriced(total: Totals, result: Result, prices: Prices, paid: int) -> Totals:
    return replace(
        total, cost=cost(result, prices) + paid, cost_uncached=cost(result, prices, cached=False) + paid
    )


def _marked(rows: Sequence[Row]) -> list[Row]:
    """With the front among the settings whose prompts all fit and can be sent."""
    whole = [row for row in rows if row.total.calls and row.total.fits == row.total.valid == row.total.calls]
    priced = [row for row in whole if row.total.cost is not None]
    best = {row.number for row in front(priced)}
    limits = {row.setting.limit for row in priced}
    here = {row.number for limit in limits for row in front([r for r in priced if r.setting.limit == limit])}
    return [replace(row, on_front=row.number in best, on_limit_front=row.number in here) for row in rows]


def found_of(run: ReplayRun, *, session_id: UUID) -> list[Found]:
    """What the run found of one session, in the order of the settings; empty where it is not in the run."""
    rows = ReplayResult.objects.filter(target__run=run, target__session_id=session_id).select_related(
        "target"
    )
    return [
        Found(target=row.target, setting=row.setting, result=_result(row.body))
        for row in rows.select_related("target").order_by("setting")
    ]


def targets_of(run: ReplayRun) -> list[ReplayTarget]:
    """The run's sessions, in their order."""
    return list(run.targets.select_related("session").order_by("ordinal"))


def targets_of_session(session: AgentSession, *, limit: int = 10) -> list[ReplayTarget]:
    """The newest runs that a session is in, newest first."""
    return list(session.replay_targets.select_related("run").order_by("-run_id")[:limit])


def sessions_newest(*, project_id: UUID, limit: int, agent: str = "", model: str = "") -> list[AgentSession]:
    """Sessions with a turn, newest first: what a run without named sessions takes."""
    rows = AgentSession.objects.filter(project_id=project_id, turn_count__gt=0)
    if agent:
        rows = rows.filter(agent=agent)
    if model:
        rows = rows.filter(model=model)
    return list(rows.order_by("-last_active_at", "-id")[:limit])


def _result(body: bytes | memoryview) -> Result:
    return Result.from_json(bodies.json_value(bodies.unpack(bytes(body))))
