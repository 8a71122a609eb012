"""Working on a replay run: one claim at a time, a few seconds each, until nothing is left.

Each task does a little and sends the next, so that a long run does not keep compactions waiting, and one that
was cancelled stops soon. Every result is stored by itself: a run that was cut off goes on where it stopped.
"""

from __future__ import annotations

import logging
import time
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet, Sum
from django.db.models.functions import Now
from django.utils import timezone

from compaction.adapters.tiktoken_counter import counter
from compaction.recap import Summarizer
from compaction.replay import Prices, Result, Setting, Totals, Transcript, actual_cost, cost, replay
from compaction.replay.transcript import HOUR
from replay.models import ReplayResult, ReplayRun, ReplayTarget
from replay.offline.compare import prices_at_the_time
from replay.selectors.settings import settings_of
from replay.selectors.stored import session_transcript
from replay.services.dispatch import replay_dispatch
from replay.services.summarizers import Cancelled, Claimed, asked_cost, asking, estimating
from sessions.services.claims import claim, is_free, release, renew, still_own
from sessions.store import bodies
from sessions.store.postgres import constraint_name

log = logging.getLogger(__name__)

#: Seconds after which a task leaves the rest to the next one.
SLICE_SECONDS = 5.0

#: How long a claim holds without a sign of life: longer than one summary of a model takes.
_LEASE = timedelta(minutes=5)


def run_step(*, run_id: UUID) -> None:
    """Does a slice of a run, and sends for the next. Nothing where another worker has it, or it is over."""
    open_runs = ReplayRun.objects.select_related("project").filter(pk=run_id, state__in=ReplayRun.OPEN)
    run = claim(open_runs, lease=_LEASE)
    if run is None:
        return
    claimed = Claimed(run=run, renew=partial(_renew, run))
    try:
        is_over = _work(claimed)
    except Cancelled:
        return
    if not is_over and release(_still_own(run)):
        replay_dispatch(run.pk)


def runs_sweep() -> int:
    """Sends for the runs that nobody works on: their message or their worker was lost. How many."""
    runs = ReplayRun.objects.filter(is_free(), state__in=ReplayRun.OPEN).order_by("pk")
    return sum(map(replay_dispatch, list(runs.values_list("pk", flat=True))))


# -- The claim ----------------------------------------------------------------------------------


def _still_own(run: ReplayRun) -> QuerySet[ReplayRun]:
    """Select the run, unless it was cancelled or another worker has claimed it."""
    return still_own(run).filter(state=run.state)


def _renew(run: ReplayRun) -> None:
    """Extend the lease. Raises `Cancelled` if the claim was lost."""
    if not renew(_still_own(run), lease=_LEASE):
        raise Cancelled


# -- The work -----------------------------------------------------------------------------------


def _work(claimed: Claimed) -> bool:
    """Works for a slice of time; whether nothing of the run is left to do."""
    run, until = claimed.run, time.monotonic() + SLICE_SECONDS
    estimates = run.state == ReplayRun.State.ESTIMATING
    left = Q(estimate_microusd=None) if estimates else Q(finished_at=None)
    while True:
        target = (
            ReplayTarget.objects.filter(left, run=run).select_related("session").order_by("ordinal").first()
        )
        if target is None:
            _finish(run)
            return True
        if not _target(claimed, target, until, estimates=estimates) or time.monotonic() > until:
            return False


def _target(claimed: Claimed, target: ReplayTarget, until: float, *, estimates: bool) -> bool:
    """Works on one session; whether it is finished."""
    try:
        transcript = session_transcript(target.session)
        if estimates:
            target.estimate_microusd = _estimate(claimed, transcript)
            target.save(update_fields=["estimate_microusd"])
            return True
        return _results(claimed, target, transcript, until)
    except Cancelled:
        raise
    except Exception as error:
        # One session that cannot be replayed must not hold up the others.
        log.exception("replay %s, session %s", claimed.run.pk, target.session_id)
        target.error = f"{type(error).__name__}: {error}"[:500].replace("\0", "\ufffd")
        target.finished_at, target.estimate_microusd = timezone.now(), target.estimate_microusd or 0
        target.save(update_fields=["error", "finished_at", "estimate_microusd"])
        return True


def _results(claimed: Claimed, target: ReplayTarget, transcript: Transcript, until: float) -> bool:
    made = set(target.results.values_list("setting", flat=True))
    left = [pair for pair in enumerate(settings_of(claimed.run)) if pair[0] not in made]
    prices = prices_at_the_time(transcript)
    for done, (number, setting) in enumerate(left):
        if done and time.monotonic() > until:
            return False  # but one at least: a session that is slow to read must come to its end too
        claimed.renew()
        summarizer = asking(claimed) if claimed.run.with_model else None
        result = _replayed(transcript, setting, summarizer)
        _store(claimed.run, target, number, _Priced.of(result, transcript, prices, claimed))
    target.actual_microusd = actual_cost(transcript, prices) if prices else None
    target.finished_at = timezone.now()
    target.save(update_fields=["actual_microusd", "finished_at"])
    return True


def _replayed(transcript: Transcript, setting: Setting, summarizer: Summarizer | None) -> Result:
    budget = setting.limit.budget(transcript)
    return replay(transcript, setting.policy, counter(), budget=budget, summarizer=summarizer)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Priced:
    """A result with its sums, and what the model's summaries cost, micro-dollars."""

    result: Result
    totals: Totals
    summaries: int

    @classmethod
    def of(cls, result: Result, transcript: Transcript, prices: Prices | None, claimed: Claimed) -> _Priced:
        hour = transcript.cache_seconds >= HOUR
        asked = asked_cost(claimed.run.project, result.summaries) if claimed.run.with_model else 0
        summaries = round(asked)
        whole, uncached = (
            (cost(result, prices, cached=cached, for_an_hour=hour) + summaries if prices else None)
            for cached in (True, False)
        )
        totals = Totals.of(result, cost=whole, cost_uncached=uncached)
        return cls(result=result, totals=totals, summaries=summaries)


@transaction.atomic
def _store(run: ReplayRun, target: ReplayTarget, number: int, priced: _Priced) -> None:
    try:
        with transaction.atomic():
            ReplayResult.objects.create(
                target=target,
                setting=number,
                figures=asdict(priced.totals),
                body=bodies.pack(bodies.json_bytes(priced.result.to_json())),
                summary_microusd=priced.summaries,
            )
    except IntegrityError as error:
        if constraint_name(error) != "replay_result_once":
            raise
        return  # a worker whose lease had expired finished first
    ReplayRun.objects.filter(pk=run.pk).update(done=F("done") + 1)


def _estimate(claimed: Claimed, transcript: Transcript) -> int:
    """What the model's summaries would cost for all settings."""
    total = 0.0
    for setting in settings_of(claimed.run):
        claimed.renew()
        result = _replayed(transcript, setting, estimating())
        total += asked_cost(claimed.run.project, result.summaries)
    return round(total)


def _finish(run: ReplayRun) -> None:
    if run.state == ReplayRun.State.ESTIMATING:
        total = run.targets.aggregate(total=Sum("estimate_microusd"))["total"] or 0
        release(_still_own(run), state=ReplayRun.State.WAITING, estimate_microusd=total)
    else:
        release(_still_own(run), state=ReplayRun.State.DONE, finished_at=Now())
