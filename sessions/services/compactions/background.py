"""Background compactions: claim, plan, let a model summarize, and apply. Recover those of dead workers.

The model is called outside of any transaction, while the agent continues with the old prompt. The result is
applied only if nothing except new messages has changed the session in the meantime.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from compaction.adapters.tiktoken_counter import counter
from compaction.policy import Policy
from compaction.recap import Recap as RecapValue
from compaction.recap.spans import Evicted, Summary
from compaction.user_requests import shown_requests
from sessions.models import AgentSession, Compaction, Recap, WebhookEvent
from sessions.selectors.compactions.records import problem_of
from sessions.services.claims import claim, is_free, renewed, still_own
from sessions.services.compactions.apply import compaction_apply
from sessions.services.compactions.circuit_breaker import breaker_count_failure, breaker_reset
from sessions.services.compactions.lifecycle import compaction_skip
from sessions.services.compactions.planning import Loaded, session_plan, view_load
from sessions.services.compactions.recap_upgrades import upgrade_apply
from sessions.services.compactions.recaps import RecapOrigin, ShownRecap, recap_shown
from sessions.services.compactions.summaries import SummaryAttempt, summary_attempt
from sessions.services.dispatch import COMPACTION_RUN, task_dispatch
from sessions.services.webhooks.deliveries import compaction_event_emit

log = logging.getLogger(__name__)

#: Attempts before a compaction fails. The last attempt uses no model.
MAX_ATTEMPTS = 3

#: Key of the record of a compaction that is attempted again: why the last attempt failed.
_LAST_FAILURE = "last_failure"

#: Maximum number of compactions per sweep, so that a long queue is not dispatched repeatedly as a whole.
_BATCH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionJob:
    """A claimed compaction with the messages to summarize. `shown` is the recap that it replaces, if any."""

    compaction: Compaction
    session: AgentSession
    policy: Policy
    evicted: Evicted | None
    previous: RecapValue | None
    shown: ShownRecap | None = None


def compaction_run(*, compaction_id: UUID) -> None:
    """Run a pending compaction. Does nothing if it is not pending or another worker has it."""
    compaction = compaction_claim(compaction_id=compaction_id)
    if compaction is None:
        return
    attempt = SummaryAttempt()
    try:
        with renewed(_still_own(compaction), lease=_lease()):
            job = _job(compaction)
            attempt = _summarize(job)
            compaction_finish(job=job, attempt=attempt)
    except Exception as error:
        # The message of an exception may quote a secret or a statement, so it is only logged.
        log.exception("compaction %s, attempt %s", compaction_id, compaction.attempts)
        reason = f"{type(error).__name__}: internal error; see compaction {compaction_id} in the server log"
        cost = attempt.cost_microusd
        compaction_retry_or_fail(compaction=compaction, reason=reason, cost_microusd=cost)


@transaction.atomic
def compaction_claim(*, compaction_id: UUID) -> Compaction | None:
    """Claim a pending compaction. Returns None if it is not pending."""
    # Lock the session. Otherwise, deleting it fails, because of the webhook delivery that is stored below.
    sessions = AgentSession.objects.select_for_update(no_key=True, of=("self",))
    if sessions.filter(compactions=compaction_id).first() is None:
        return None
    rows = Compaction.objects.select_related("session")
    pending = rows.filter(pk=compaction_id, state=Compaction.State.PENDING)
    running = Compaction.State.RUNNING
    compaction = claim(
        pending, lease=_lease(), longest=2 * _lease(), state=running, started_at=timezone.now()
    )
    if compaction is not None and compaction.attempts == 1:
        compaction_event_emit(compaction=compaction, event=WebhookEvent.STARTED)
    return compaction


def _lease() -> timedelta:
    return timedelta(seconds=settings.CONTEXTAPP_LEASE_SECONDS)


def _still_own(compaction: Compaction) -> QuerySet[Compaction]:
    """Select the compaction, unless the sweep or the hard trigger has taken it from this worker."""
    return still_own(compaction).filter(state=Compaction.State.RUNNING)


def _job(compaction: Compaction) -> CompactionJob:
    session = AgentSession.objects.select_related("project").get(pk=compaction.session_id)
    policy = Policy.from_json(compaction.policy)
    if compaction.upgrades is not None:
        shown = recap_shown(compaction.upgrades)
        requests = shown_requests(view_load(session).view.entries) if shown else ()
        return CompactionJob(
            compaction=compaction,
            session=session,
            policy=policy,
            evicted=replace(shown.evicted, requests=requests) if shown else None,
            previous=shown.previous if shown else None,
            shown=shown,
        )
    loaded = view_load(session, shortens=True)
    draft = session_plan(loaded, trigger=compaction.trigger, policy=policy)
    return CompactionJob(
        compaction=compaction,
        session=session,
        policy=policy,
        evicted=draft.evicted,
        previous=loaded.previous,
    )


def _summarize(job: CompactionJob) -> SummaryAttempt:
    """Call the model if messages are evicted. Runs outside of any transaction, because it takes seconds."""
    if job.evicted is not None and job.compaction.attempts >= MAX_ATTEMPTS:
        failure = job.compaction.record.get(_LAST_FAILURE, "")
        return SummaryAttempt.abandoned(f"earlier attempts failed: {failure}")
    return summary_attempt(
        project=job.session.project,
        evicted=job.evicted,
        previous=job.previous,
        instructions=_instructions(job),
    )


def _instructions(job: CompactionJob) -> str:
    """Return the policy's instructions for summaries, and those of the user who requested this one."""
    given = (job.policy.summary_instructions.strip(), job.compaction.instructions.strip())
    return "\n\n".join(filter(None, given))


@transaction.atomic
def compaction_finish(*, job: CompactionJob, attempt: SummaryAttempt) -> None:
    """Apply the result, if the claim was not lost and only pushes have changed the session since."""
    session = AgentSession.objects.select_for_update().filter(pk=job.session.pk).first()
    if session is None:
        return  # deleted in the meantime, with the compaction
    compaction = _still_own(job.compaction).select_for_update().first()
    if compaction is None:
        _add_cost(job.compaction, attempt)
        return
    if attempt.failed:
        breaker_count_failure(session)
    elif attempt.result is not None:
        breaker_reset(session)
    attempt = replace(attempt, cost_microusd=_total(compaction.cost_microusd, attempt.cost_microusd))
    compaction.cost_microusd, compaction.record = attempt.cost_microusd, dict(attempt.notes)
    if session.edits_revision != job.session.edits_revision:
        compaction_skip(
            compaction=compaction, reason="superseded: the prompt was compacted or reverted in the meantime"
        )
    elif compaction.upgrades_id is None:
        _apply(compaction, view_load(session, shortens=True), job.policy, attempt)
    elif job.shown is None or attempt.result is None:
        problem = problem_of(attempt.notes.get("fallback", "")) or "the prompt no longer contains it"
        compaction_skip(compaction=compaction, reason=f"the recap was not replaced: {problem}")
    else:
        upgrade_apply(
            compaction=compaction,
            loaded=view_load(session),
            shown=job.shown,
            policy=job.policy,
            attempt=attempt,
        )


def _apply(compaction: Compaction, loaded: Loaded, policy: Policy, attempt: SummaryAttempt) -> None:
    summary, result = None, attempt.result
    if attempt.evicted is not None and result is not None:
        summary = Summary.of(result.recap, attempt.evicted, counter())
        # Messages that arrived during the call are kept: dropping them would lose them without a summary.
        policy = replace(policy, steps=tuple(step for step in policy.steps if step != "drop_oldest"))
    plan = session_plan(loaded, trigger=compaction.trigger, policy=policy, summary=summary)
    is_used = summary is not None and plan.recap is summary.recap
    compaction.awaits_upgrade = attempt.awaits_upgrade
    origin = RecapOrigin(
        author=Recap.Author.MODEL if is_used else Recap.Author.EXTRACTOR,
        model=attempt.model if is_used else "",
        cost_microusd=attempt.cost_microusd,
        notes={**attempt.notes, "summary_used": is_used},
    )
    compaction_apply(compaction=compaction, loaded=loaded, plan=plan, origin=origin)


def _add_cost(compaction: Compaction, attempt: SummaryAttempt) -> None:
    """Record the cost of a summary that is not used because the claim was lost.

    If another worker has applied the compaction, its record describes the summary of that worker.
    """
    row = Compaction.objects.select_for_update().filter(pk=compaction.pk).first()
    if row is None:
        return
    row.cost_microusd = _total(row.cost_microusd, attempt.cost_microusd)
    if row.state not in Compaction.APPLIED:
        row.record = {**row.record, **attempt.notes}
    row.save(update_fields=["cost_microusd", *Compaction.RECORD])


def _total(earlier: int | None, cost: int | None) -> int | None:
    """Return the cost of all attempts, or None if the model has no price."""
    return None if cost is None else (earlier or 0) + cost


@transaction.atomic
def compaction_retry_or_fail(*, compaction: Compaction, reason: str, cost_microusd: int | None = 0) -> None:
    """Release a compaction for another attempt, or let it fail after the last one.

    `cost_microusd` is the cost of a summary that was not applied.
    """
    session = AgentSession.objects.select_for_update().filter(pk=compaction.session_id).first()
    own = _still_own(compaction).select_for_update().first()
    if own is None or session is None:
        return
    own.cost_microusd = _total(own.cost_microusd, cost_microusd)
    if own.attempts < MAX_ATTEMPTS:
        own.state, own.lease_until = Compaction.State.PENDING, None
        own.record = {**own.record, _LAST_FAILURE: reason}  # its own reason states why it runs
    else:
        own.state, own.reason, own.finished_at = Compaction.State.FAILED, reason, timezone.now()
        breaker_count_failure(session)
    columns = ["state", "reason", "cost_microusd", "finished_at", "lease_until", *Compaction.RECORD]
    own.save(update_fields=columns)
    if own.state == Compaction.State.FAILED:
        compaction_event_emit(compaction=own, event=WebhookEvent.FINISHED)


def compactions_sweep() -> int:
    """Retry compactions of dead workers, and dispatch pending ones again. Returns the number dispatched.

    Concurrent sweeps dispatch each compaction once.
    """
    stale = Compaction.objects.filter(is_free(longest=2 * _lease()), state=Compaction.State.RUNNING)
    for compaction in stale.order_by("created_at")[:_BATCH]:
        compaction_retry_or_fail(compaction=compaction, reason="the worker was lost")
    patience = timedelta(seconds=settings.CONTEXTAPP_REDISPATCH_SECONDS)
    # A time in the future was written before the clock was set back.
    recent = Q(dispatched_at__gte=Now() - patience, dispatched_at__lte=Now() + patience)
    pending = Compaction.objects.filter(state=Compaction.State.PENDING)
    lost = pending.filter(Q(dispatched_at=None) | ~recent)
    return sum(_dispatch_again(compaction) for compaction in lost.order_by("created_at")[:_BATCH])


def _dispatch_again(compaction: Compaction) -> bool:
    not_dispatched = Compaction.objects.filter(pk=compaction.pk, dispatched_at=compaction.dispatched_at)
    return not_dispatched.update(dispatched_at=Now()) == 1 and task_dispatch(COMPACTION_RUN, compaction.pk)
