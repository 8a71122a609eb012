"""Execute replay runs in slices of a few seconds.

Each task executes one slice and dispatches the next, so that a long run does not delay compactions and a
cancelled run stops soon. Results are stored separately, so an interrupted run continues where it stopped.
"""

from __future__ import annotations

import logging
import time
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.db import IntegrityError, OperationalError, transaction
from django.db.models import F, Q, QuerySet, Sum
from django.db.models.expressions import Combinable
from django.db.models.functions import Now
from django.utils import timezone

from compaction.adapters.tiktoken_counter import counter
from compaction.recap import Summarizer
from compaction.replay.costs import Billing, actual_cost, priced
from compaction.replay.reference_count import Search
from compaction.replay.result import Result
from compaction.replay.setting import Setting
from compaction.replay.simulate import replay
from compaction.replay.transcript import Transcript
from replay.models import ReplayResult, ReplayRun, ReplayTarget
from replay.selectors.price_tables import transcript_prices
from replay.selectors.run_settings import prices_of, settings_of
from replay.selectors.searches import session_search
from replay.selectors.transcripts import session_transcript
from replay.services.summarizers import (
    ClaimedRun,
    ClaimLost,
    estimating_summarizer,
    project_summarizer,
    summaries_cost,
)
from sessions.services.claims import claim, is_free, release, renew, renewed, still_own
from sessions.services.dispatch import task_dispatch
from sessions.services.search.indexing import session_index
from sessions.store.postgres import constraint_name
from sessions.store.text import storable

log = logging.getLogger(__name__)

#: The name of the task, so that senders need not import it.
STEP = "replay.tasks.replay_step"

#: Seconds after which a task leaves the rest to the next task.
SLICE_SECONDS = 5.0

#: Attempts at a session without a result after which the others continue without it.
MAX_STALLS = 4

#: Renewed while a slice runs, which may take minutes for one result of a long session.
_LEASE = timedelta(seconds=30)


def run_step(*, run_id: UUID) -> None:
    """Execute one slice of a run and dispatch the next. Does nothing if the run is claimed or has ended."""
    open_runs = ReplayRun.objects.select_related("project").filter(pk=run_id, state__in=ReplayRun.OPEN)
    run = claim(open_runs, lease=_LEASE)
    if run is None:
        return
    claimed = ClaimedRun(run=run, renew=partial(_renew, run))
    try:
        with renewed(_still_own(run), lease=_LEASE):
            is_finished = _run_slice(claimed)
    except ClaimLost:
        return
    if not is_finished and release(_still_own(run)):
        task_dispatch(STEP, run.pk)


def replays_sweep() -> int:
    """Dispatch the open runs without a worker. Returns their number."""
    runs = ReplayRun.objects.filter(is_free(), state__in=ReplayRun.OPEN).order_by("pk")
    return sum(task_dispatch(STEP, id) for id in runs.values_list("pk", flat=True))


# -- The claim ----------------------------------------------------------------------------------


def _still_own(run: ReplayRun) -> QuerySet[ReplayRun]:
    """Select the run, unless it was cancelled or another worker has claimed it."""
    return still_own(run).filter(state=run.state)


def _renew(run: ReplayRun) -> None:
    """Extend the lease. Raises `ClaimLost` if the claim was lost."""
    if not renew(_still_own(run), lease=_LEASE):
        raise ClaimLost


# -- The slices ---------------------------------------------------------------------------------


def _run_slice(claimed: ClaimedRun) -> bool:
    """Work on the run for one slice. Returns whether the run is finished."""
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
        if target.stalls >= MAX_STALLS:
            _give_up(target, f"The worker ended {MAX_STALLS} times without a result of this session.")
            continue
        _set_stalls(target, F("stalls") + 1)
        if not _target(claimed, target, until, estimates=estimates) or time.monotonic() > until:
            return False


def _target(claimed: ClaimedRun, target: ReplayTarget, until: float, *, estimates: bool) -> bool:
    """Work on one session. Returns whether it is finished."""
    try:
        transcript = session_transcript(target.session)
        if estimates:
            target.estimate_microusd, target.stalls = _estimate(claimed, transcript), 0
            target.save(update_fields=["estimate_microusd", "stalls"])
            return True
        return _results(claimed, target, transcript, until)
    except ClaimLost:
        _set_stalls(target, 0)
        raise
    except OperationalError:
        raise  # the sweep dispatches the run again when its lease has ended
    except Exception as error:
        # A session that cannot be replayed, or was deleted meanwhile, must not block the others.
        if ReplayTarget.objects.filter(pk=target.pk).exists():
            log.exception("replay %s, session %s", claimed.run.pk, target.session_id)
            _give_up(target, storable(f"{type(error).__name__}: {error}"[:500]))
        return True


def _give_up(target: ReplayTarget, error: str) -> None:
    """Record why a session cannot be replayed."""
    target.error, target.finished_at = error, timezone.now()
    target.estimate_microusd = target.estimate_microusd or 0
    target.save(update_fields=["error", "finished_at", "estimate_microusd"])


def _set_stalls(target: ReplayTarget, stalls: int | Combinable) -> None:
    ReplayTarget.objects.filter(pk=target.pk).update(stalls=stalls)


def _results(claimed: ClaimedRun, target: ReplayTarget, transcript: Transcript, until: float) -> bool:
    done = set(target.results.values_list("setting", flat=True))
    left = [pair for pair in enumerate(settings_of(claimed.run)) if pair[0] not in done]
    prices = transcript_prices(transcript, prices_of(claimed.run))
    billing = Billing.of(transcript, prices)
    session_index(session_id=target.session_id)  # the index of an imported session may not be complete yet
    search = session_search(target.session)
    for index, (number, setting) in enumerate(left):
        if index and time.monotonic() > until:
            return False  # checked after the first result, so that slow sessions make progress too
        claimed.renew()
        summarizer = project_summarizer(claimed) if claimed.run.with_model else None
        result = _replayed(transcript, setting, summarizer, search)
        summaries = round(summaries_cost(claimed.run, result.summaries)) if claimed.run.with_model else 0
        stored = ReplayResult(
            target=target,
            setting=number,
            figures=asdict(priced(result, prices, billing, summaries=summaries)),
            body=result.to_json(),
            summary_microusd=summaries,
            budget_tokens=setting.limit.provider_tokens(transcript),
        )
        _store(claimed.run, stored)
    target.written_share, target.one_hour_cache = billing.written_share, billing.one_hour
    target.actual_microusd = actual_cost(transcript, prices) if prices else None
    target.finished_at = timezone.now()
    target.save(update_fields=["written_share", "one_hour_cache", "actual_microusd", "finished_at"])
    return True


def _replayed(
    transcript: Transcript, setting: Setting, summarizer: Summarizer | None, search: Search | None = None
) -> Result:
    budget = setting.limit.budget(transcript)
    return replay(transcript, setting.policy, counter(), budget=budget, summarizer=summarizer, search=search)


@transaction.atomic
def _store(run: ReplayRun, result: ReplayResult) -> None:
    try:
        with transaction.atomic():
            result.save(force_insert=True)
    except IntegrityError as error:
        if constraint_name(error) != "replay_result_once":
            raise
        return  # another worker, whose lease had expired, stored it first
    _set_stalls(result.target, 0)
    ReplayRun.objects.filter(pk=run.pk).update(done=F("done") + 1)


def _estimate(claimed: ClaimedRun, transcript: Transcript) -> int:
    """Return the estimated cost of the model's summaries for all settings, in micro-dollars."""
    total = 0.0
    for setting in settings_of(claimed.run):
        claimed.renew()
        result = _replayed(transcript, setting, estimating_summarizer())
        total += summaries_cost(claimed.run, result.summaries)
    return round(total)


def _finish(run: ReplayRun) -> None:
    if run.state == ReplayRun.State.ESTIMATING:
        total = run.targets.aggregate(total=Sum("estimate_microusd"))["total"] or 0
        release(_still_own(run), state=ReplayRun.State.WAITING, estimate_microusd=total)
    else:
        release(_still_own(run), state=ReplayRun.State.DONE, finished_at=Now())
