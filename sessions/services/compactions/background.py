"""Compactions in the background: claimed, planned, summarised by a model, swapped in.

The model is asked outside of any transaction, while the agent goes on with the old layout. What it made is
shown only if nothing but appended messages has changed since.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from compaction.policy import Policy
from compaction.recap import Recap as RecapValue
from compaction.recap.spans import Evicted, Summary
from sessions.models import AgentSession, Compaction, Recap, WebhookEvent
from sessions.services.claims import claim, renewed, still_own
from sessions.services.compactions.apply import Origin, compaction_apply, compaction_skip
from sessions.services.compactions.planning import Loaded, session_plan, view_load
from sessions.services.compactions.recap_upgrades import upgrade_apply
from sessions.services.compactions.recaps import ShownRecap, recap_shown
from sessions.services.compactions.summaries import Attempt, summary_attempt
from sessions.services.webhooks.deliveries import compaction_event_emit

log = logging.getLogger(__name__)

#: How often a compaction is claimed before it has failed. The last time does without a model.
MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A claimed compaction with what it was planned on. `standing` is the recap that it replaces, if any."""

    compaction: Compaction
    session: AgentSession
    policy: Policy
    evicted: Evicted | None
    previous: RecapValue | None
    standing: ShownRecap | None = None


def compaction_run(*, compaction_id: UUID) -> None:
    """Carries a pending compaction out. Does nothing where it is not pending: somebody else has it."""
    compaction = compaction_claim(compaction_id=compaction_id)
    if compaction is None:
        return
    try:
        with renewed(_still_own(compaction), lease=_lease()):
            job = _job(compaction)
            compaction_swap(job=job, attempt=_attempt(job))
    except Exception as error:
        # What an exception says may quote a secret or a statement: it goes to the log, and not on the record.
        log.exception("compaction %s, attempt %s", compaction_id, compaction.attempts)
        reason = f"{type(error).__name__}: a fault of the server; its log tells of compaction {compaction_id}"
        compaction_retry_or_fail(compaction=compaction, reason=reason)


@transaction.atomic
def compaction_claim(*, compaction_id: UUID) -> Compaction | None:
    """The compaction, now running and ours; None where it was not pending."""
    rows = Compaction.objects.select_related("session")
    pending = rows.filter(pk=compaction_id, state=Compaction.State.PENDING)
    running = Compaction.State.RUNNING
    compaction = claim(pending, lease=_lease(), state=running, started_at=timezone.now())
    if compaction is not None and compaction.attempts == 1:
        compaction_event_emit(compaction=compaction, event=WebhookEvent.STARTED)
    return compaction


def _lease() -> timedelta:
    return timedelta(seconds=settings.CONTEXTAPP_LEASE_SECONDS)


def _job(compaction: Compaction) -> Job:
    session = AgentSession.objects.select_related("project").get(pk=compaction.session_id)
    policy = Policy.from_json(compaction.policy)
    if compaction.upgrades is not None:
        standing = recap_shown(compaction.upgrades)
        return Job(
            compaction=compaction,
            session=session,
            policy=policy,
            evicted=standing.evicted if standing else None,
            previous=standing.previous if standing else None,
            standing=standing,
        )
    loaded = view_load(session)
    draft = session_plan(loaded, trigger=compaction.trigger, policy=policy)
    return Job(
        compaction=compaction,
        session=session,
        policy=policy,
        evicted=draft.evicted if draft.record.summarizer_needed else None,
        previous=loaded.previous,
    )


def _attempt(job: Job) -> Attempt:
    """Asks the model where one is needed. Outside of any transaction: it takes seconds."""
    if job.evicted is not None and job.compaction.attempts >= MAX_ATTEMPTS:
        return Attempt.given_up(f"earlier attempts did not get through: {job.compaction.reason}")
    return summary_attempt(
        project=job.session.project,
        evicted=job.evicted,
        previous=job.previous,
        instructions=job.compaction.instructions,
    )


@transaction.atomic
def compaction_swap(*, job: Job, attempt: Attempt) -> None:
    """Shows what was made, if it is still ours and nothing but pushes has changed the session since."""
    session = AgentSession.objects.select_for_update().get(pk=job.session.pk)
    mine = _still_own(job.compaction).select_for_update().first()
    if mine is None:
        _note_cost(job.compaction, attempt)
        return
    _note_health(session, attempt)
    mine.cost_microusd, mine.record = attempt.cost_microusd, dict(attempt.notes)
    if session.edits_revision != job.session.edits_revision:
        compaction_skip(compaction=mine, reason="superseded: what is shown was changed meanwhile")
    elif mine.upgrades_id is None:
        _apply(mine, view_load(session), job.policy, attempt)
    elif job.standing is None or attempt.result is None:
        compaction_skip(compaction=mine, reason="the recap stays: there is no better one")
    else:
        upgrade_apply(
            compaction=mine,
            loaded=view_load(session),
            standing=job.standing,
            policy=job.policy,
            attempt=attempt,
        )


def _apply(mine: Compaction, loaded: Loaded, policy: Policy, attempt: Attempt) -> None:
    summary, result = None, attempt.result
    if attempt.evicted is not None and result is not None:
        summary = Summary(recap=result.recap, first=attempt.evicted.first, last=attempt.evicted.last)
        # What came while the model wrote stays: to drop it for the target's sake would lose it unsummarised.
        policy = replace(policy, steps=tuple(step for step in policy.steps if step != "drop_oldest"))
    made = session_plan(loaded, trigger=mine.trigger, policy=policy, summary=summary)
    used = result is not None and made.recap is result.recap
    mine.awaits_upgrade = attempt.awaits_upgrade
    origin = Origin(
        author=Recap.Author.MODEL if used else Recap.Author.EXTRACTOR,
        model=attempt.model if used else "",
        cost_microusd=attempt.cost_microusd,
        notes={**attempt.notes, "summary_used": used},
    )
    compaction_apply(compaction=mine, loaded=loaded, made=made, origin=origin)


def _still_own(compaction: Compaction) -> QuerySet[Compaction]:
    """Select the compaction, unless the sweep or the hard trigger has taken it from this worker."""
    return still_own(compaction).filter(state=Compaction.State.RUNNING)


def _note_cost(compaction: Compaction, attempt: Attempt) -> None:
    """What was spent in vain is told all the same."""
    row = Compaction.objects.select_for_update().filter(pk=compaction.pk).first()
    if row is None:
        return
    row.cost_microusd = (row.cost_microusd or 0) + (attempt.cost_microusd or 0)
    row.record = {**row.record, **attempt.notes}
    row.save(update_fields=["cost_microusd", "record"])


def _note_health(session: AgentSession, attempt: Attempt) -> None:
    """Keeps the circuit breaker's count. A compaction that needed no model says nothing about one."""
    if attempt.failed:
        session.failures += 1
        session.failed_at = timezone.now()
    elif attempt.result is not None:
        session.failures = 0
    session.save(update_fields=["failures", "failed_at"])


@transaction.atomic
def compaction_retry_or_fail(*, compaction: Compaction, reason: str) -> None:
    """Another try for a compaction that did not get through; after the last one it has failed."""
    session = AgentSession.objects.select_for_update().filter(pk=compaction.session_id).first()
    mine = _still_own(compaction).select_for_update().first()
    if mine is None or session is None:
        return
    mine.reason = reason
    if mine.attempts < MAX_ATTEMPTS:
        mine.state, mine.lease_until = Compaction.State.PENDING, None
    else:
        mine.state = Compaction.State.FAILED
        mine.finished_at = timezone.now()
        session.failures += 1
        session.failed_at = timezone.now()
        session.save(update_fields=["failures", "failed_at"])
    mine.save(update_fields=["state", "reason", "finished_at", "lease_until"])
    if mine.state == Compaction.State.FAILED:
        compaction_event_emit(compaction=mine, event=WebhookEvent.FINISHED)
