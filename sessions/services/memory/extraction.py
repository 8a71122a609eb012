"""Memory extraction: if the project sets a model, it reads the turns that automatic updates have processed.

The model is not called for every turn, but when there is enough new content or the session has become idle.
It is called outside of any transaction; its suggestions are then applied to the current memory.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from accounts.models import Project
from compaction.adapters.tiktoken_counter import counter
from compaction.errors import SummaryError
from compaction.memory.extraction.reply import Extraction
from compaction.memory.extraction.schedule import MAX_INPUT_TOKENS, TURNS_AT_ONCE, turns_to_extract
from compaction.memory.extraction.suggestions import Suggestion
from compaction.recap.model_input import split_by_tokens
from compaction.structured_output import Reply, answer_of
from redaction import redact
from sessions.models import AgentSession, MemoryExtraction, MemoryExtractionState
from sessions.selectors.memory.revisions import memory_latest, memory_notes, memory_schema
from sessions.selectors.redaction import redaction_for
from sessions.selectors.summarizers import reader, reader_missing
from sessions.selectors.transcripts.turns import turns_messages, turns_tokens
from sessions.services.claims import claim, is_free
from sessions.services.dispatch import MEMORY_UPDATE, task_dispatch
from sessions.services.memory.extraction_results import (
    ExtractionJob,
    dismissed_items,
    extraction_end,
    extraction_fail,
    extraction_store,
    suggestions_apply,
)
from sessions.services.memory.fact_observations import idle_time
from sessions.services.memory.update_state import update_state_load, update_state_turn

if TYPE_CHECKING:
    from compaction.adapters.claude import Exchange

log = logging.getLogger(__name__)

#: The longest pause between two attempts.
_LONGEST_PAUSE = timedelta(hours=1)

#: Sessions that have been idle for longer are no longer read.
_SWEEP_PERIOD = timedelta(days=1)
#: Sessions per sweep: a model reads for seconds, and webhooks and the search index wait for it.
_SWEEP_SESSIONS = 20


def extraction_run(*, session_id: UUID) -> bool:
    """Let the model read the pending turns of a session once. Returns whether any were read.

    If more turns are pending, another task follows, so that a long session does not block a worker.
    """
    job = _claim_turns(session_id)
    if job is None or not _extract(job):
        return False
    if _pending_end(job.session, job.end) is not None:
        task_dispatch(MEMORY_UPDATE, session_id)
    return True


def extractions_sweep() -> int:
    """Dispatch extraction for idle sessions with unread turns. Returns the number of sessions."""
    projects = Project.objects.filter(memory_upkeep=True).exclude(memory_model="")
    active = [project.pk for project in projects if not reader_missing(project)]
    if not active:
        return 0
    now = timezone.now()
    rows = AgentSession.objects.filter(
        Q(memory_extraction_state=None) | Q(memory_extraction_state__turn__lt=F("memory_update_state__turn")),
        is_free("memory_extraction_state__", longest=_LONGEST_PAUSE),
        project__in=active,
        turn_count__gt=0,
        last_active_at__range=(now - _SWEEP_PERIOD, now - idle_time()),
    )
    ids = rows.order_by("-last_active_at").values_list("pk", flat=True)[:_SWEEP_SESSIONS]
    return sum(task_dispatch(MEMORY_UPDATE, session_id) for session_id in ids)


# -- Claim the next turns -----------------------------------------------------------------------------------


def _claim_turns(session_id: UUID) -> ExtractionJob | None:
    """Claim the next turns. Returns None if there are too few, or another worker has them."""
    session = AgentSession.objects.select_related("project").filter(pk=session_id).first()
    if session is None or reader_missing(session.project):
        return None
    turn = MemoryExtractionState.objects.get_or_create(session=session)[0].turn
    end = _pending_end(session, turn)
    if end is None:
        return None
    rows = MemoryExtractionState.objects.filter(session=session, turn=turn)
    state = claim(rows, lease=_lease, longest=_LONGEST_PAUSE, last_error="")
    return _job(session, state, end) if state is not None else None


def _pending_end(session: AgentSession, first: int) -> int | None:
    """Return the end of the turns that the model should read now, or None if there are too few."""
    last = min(update_state_turn(session), first + TURNS_AT_ONCE)  # automatic updates read them first
    tokens = turns_tokens(session, first, last)
    is_idle = session.last_active_at <= timezone.now() - idle_time()
    count = turns_to_extract([tokens.get(turn, 0) for turn in range(first, last)], is_idle=is_idle)
    return first + count if count else None


def _lease(attempt: int) -> timedelta:
    """Return a lease that is longer than an extraction may take, and doubles with each failed attempt."""
    longest_call = settings.CONTEXTAPP_SUMMARIZER_TOTAL_TIMEOUT + settings.CONTEXTAPP_LEASE_SECONDS
    cooldown = settings.CONTEXTAPP_COOLDOWN_SECONDS * 2 ** min(attempt - 1, 10)
    return max(timedelta(seconds=longest_call), min(timedelta(seconds=cooldown), _LONGEST_PAUSE))


def _job(session: AgentSession, state: MemoryExtractionState, end: int) -> ExtractionJob:
    latest = memory_latest(session_id=session.pk)
    return ExtractionJob(
        session=session,
        claimed=state,
        first=state.turn,
        end=end,
        messages=list(turns_messages(session, state.turn, end)),
        notes=memory_notes(latest),
        update_state=update_state_load(session)[1],
        schema=memory_schema(project_id=session.project_id),
        dismissed=dismissed_items(state, latest),
    )


# -- Call the model -----------------------------------------------------------------------------------------


def _extract(job: ExtractionJob) -> bool:
    """Call the model and store the result. Returns False if that failed."""
    exchange = reader(job.session.project.memory_model).begin()
    try:
        return extraction_store(job, exchange, _suggestions(job, exchange))
    except SummaryError as error:
        log.warning("memory extraction of %s failed: %s", job.session.pk, error, exc_info=error.__cause__)
        return extraction_fail(job, exchange, error)
    except Exception:
        # The message of an exception may quote a secret or a statement, so it is only logged.
        log.exception("memory extraction of turns %s to %s of %s", job.first, job.end - 1, job.session.pk)
        reason = "internal error; see the server log"
        return extraction_end(job, exchange, MemoryExtraction.State.FAILED, reason)


def _suggestions(job: ExtractionJob, exchange: Exchange) -> list[Suggestion]:
    """Return the model's suggestions. Each piece is read with the suggestions of the earlier ones applied."""
    notes, found = job.notes, list[Suggestion]()
    for piece in split_by_tokens(job.messages, MAX_INPUT_TOKENS, counter()):
        extraction = Extraction(messages=piece, notes=notes, schema=job.schema, dismissed=job.dismissed)
        suggestions = exchange.answer(
            extraction.request,
            partial(_parse, job, extraction),
            length_hint="Return fewer and shorter operations.",
        )
        notes = suggestions_apply(job, notes, suggestions).notes
        found += suggestions
    return found


def _parse(job: ExtractionJob, extraction: Extraction, reply: Reply) -> Sequence[Suggestion]:
    """Redact and parse a reply."""
    clean, _ = redact(dict(answer_of(reply)), redaction=redaction_for(job.session.project_id))
    return extraction.suggestions(clean)
