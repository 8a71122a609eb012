"""Store the results and the cost of a memory extraction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

import pricing
from compaction.adapters.tiktoken_counter import counter
from compaction.errors import SummaryError, SummaryMalformed, SummaryRefused, SummaryTooLong
from compaction.memory.extraction.apply import Applied, apply, removed_items
from compaction.memory.extraction.suggestions import Suggestion
from compaction.memory.origins import Author, Notes, Via
from compaction.memory.schema import Schema
from compaction.memory.updates import UpdaterState
from compaction.messages import Message as MessageValue
from compaction.messages import usage_sum
from sessions.models import AgentSession, MemoryExtraction, MemoryExtractionState, MemoryRevision
from sessions.selectors.memory.revisions import memory_latest, memory_notes
from sessions.services.claims import still_own
from sessions.services.memory.revisions import Writer, revision_create
from sessions.services.memory.update_state import update_state_load, update_state_store

if TYPE_CHECKING:
    from compaction.adapters.claude import Exchange

#: Number of attempts after which turns are skipped if their replies were billed but unusable.
_MAX_UNUSABLE = 3

#: Maximum number of removed items to remember, and of revisions to check for them.
_MAX_DISMISSED, _MAX_REVISIONS = 100, 200

_UNUSABLE = (SummaryMalformed, SummaryTooLong)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionJob:
    """Claimed turns, from `first` up to, not including, `end`, and the memory at the time of the claim."""

    session: AgentSession
    claimed: MemoryExtractionState
    first: int
    end: int
    messages: Sequence[MessageValue]
    notes: Notes
    update_state: UpdaterState
    schema: Schema
    dismissed: Sequence[str]


def dismissed_items(state: MemoryExtractionState, latest: MemoryRevision | None) -> tuple[str, ...]:
    """Return the items that were removed from the memory, oldest first; a model must not add them again."""
    known = state.dismissed or ()
    since = MemoryRevision.objects.filter(session=state.session_id, number__gte=state.revision)
    revisions = [memory_notes(row) for row in since.order_by("-number")[:_MAX_REVISIONS]] if latest else []
    return (*known, *removed_items(revisions[::-1]))[-_MAX_DISMISSED:]


def suggestions_apply(job: ExtractionJob, notes: Notes, suggestions: Sequence[Suggestion]) -> Applied:
    """Return the notes with the suggestions that are allowed."""
    return apply(
        notes,
        job.update_state,
        suggestions,
        schema=job.schema,
        dismissed=job.dismissed,
        counter=counter(),
    )


@transaction.atomic
def extraction_store(job: ExtractionJob, exchange: Exchange, suggestions: Sequence[Suggestion]) -> bool:
    """Apply the suggestions to the current memory, unless the claim has been lost."""
    session = AgentSession.objects.select_for_update().filter(pk=job.session.pk).first()
    state = _claimed_state(job)
    if session is None or state is None:
        return extraction_end(job, exchange, MemoryExtraction.State.SUPERSEDED, "another worker took over")
    latest = memory_latest(session_id=session.pk)
    number = latest.number if latest is not None else 0
    next_turn, update_state = update_state_load(session)
    current = replace(job, update_state=update_state, dismissed=dismissed_items(state, latest))
    applied = suggestions_apply(current, memory_notes(latest), suggestions)
    if applied.reason:
        number += 1
        reason = f"read turns {job.first} to {job.end - 1}: {applied.reason}"
        writer = Writer(author=Author.MODEL, via=Via.EXTRACTION, reason=reason)
        last = max(session.turn_count - 1, 0)
        revision_create(session=session, number=number, notes=applied.notes, turn=last, writer=writer)
        update_state_store(session, next_turn, applied.state)
    state.dismissed, state.revision = current.dismissed, number
    state.save(update_fields=["dismissed", "revision"])
    revision = number if applied.reason else None
    return extraction_end(job, exchange, MemoryExtraction.State.DONE, applied.reason, revision)


def extraction_fail(job: ExtractionJob, exchange: Exchange, error: SummaryError) -> bool:
    """Store a failure. Turns are skipped if the model refuses them or its billed replies remain unusable."""
    is_final = isinstance(error, SummaryRefused) or (
        isinstance(error, _UNUSABLE) and job.claimed.attempts >= _MAX_UNUSABLE
    )
    state = MemoryExtraction.State.GIVEN_UP if is_final else MemoryExtraction.State.FAILED
    return extraction_end(job, exchange, state, str(error))


@transaction.atomic
def extraction_end(
    job: ExtractionJob,
    exchange: Exchange,
    state: MemoryExtraction.State,
    reason: str,
    revision: int | None = None,
) -> bool:
    """Store the cost of an extraction and the next turn. Returns whether the next one may start now."""
    session = AgentSession.objects.filter(pk=job.session.pk).first()
    if session is None:
        return False
    MemoryExtraction.objects.create(
        session=session,
        model=job.session.project.memory_model,
        first_turn=job.first,
        end_turn=job.end,
        state=state,
        reason=reason,
        revision=revision,
        requests=exchange.requests,
        cost_microusd=pricing.calls_cost(job.session.project.memory_model, exchange.calls),
        **usage_sum(exchange.calls).counts,
    )
    row = _claimed_state(job)
    if row is None:
        return False
    if state == MemoryExtraction.State.FAILED:
        row.last_error = reason  # the lease is kept: it is the pause before the next attempt
    else:
        row.turn, row.attempts, row.lease_until, row.read_at = job.end, 0, None, timezone.now()
        row.last_error = reason if state == MemoryExtraction.State.GIVEN_UP else ""
    row.save(update_fields=["turn", "attempts", "lease_until", "read_at", "last_error"])
    return state != MemoryExtraction.State.FAILED


def _claimed_state(job: ExtractionJob) -> MemoryExtractionState | None:
    """Lock and return the state row, or None if another worker has claimed it since."""
    return still_own(job.claimed).select_for_update().filter(turn=job.first).first()
