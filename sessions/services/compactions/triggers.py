"""Triggers outside of a push: a user requests a compaction, or a session has become idle."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from compaction.policy import Policy
from compaction.provider_engine import is_compacted_by_provider
from compaction.sizes.breakdown import TokenBreakdown
from compaction.triggers import TriggerState, fires, idle, requested
from sessions.models import AgentSession, Compaction
from sessions.selectors.summarizers import summarizer_missing
from sessions.selectors.token_budgets import policy_of, session_budget, session_calibration
from sessions.services.compactions.apply import session_compact
from sessions.services.compactions.circuit_breaker import breaker_open_until
from sessions.services.compactions.lifecycle import (
    compaction_in_progress,
    compaction_open,
    require_none_in_progress,
)

#: Sessions that have been idle for longer are no longer compacted.
_MAX_IDLE = timedelta(days=1)
#: Maximum number of sessions that are compacted per pass.
_IDLE_BATCH = 500
#: The columns on which the idle trigger depends.
_READ = (
    *("policy", "calibration", "model", "shown_components", "budget_tokens", "context_window"),
    *("fired_tokens", "last_active_at", "open_calls", "format"),
)


def compaction_queue_or_skip(session: AgentSession, trigger: str) -> Compaction:
    """Queue a compaction, or record why it is skipped. The caller has locked the session.

    Both move the re-trigger cursor, so that a skipped compaction is triggered again only after the prompt has
    grown.
    """
    reason = _refusal(session)
    state = Compaction.State.SKIPPED if reason else Compaction.State.PENDING
    return compaction_open(session=session, trigger=trigger, state=state, reason=reason)


def _refusal(session: AgentSession) -> str:
    """Return why no background compaction can start now, or "" if one can."""
    other = compaction_in_progress(session)
    if other is not None:
        return f"refused: compaction {other.number} is in progress"
    until = breaker_open_until(session, policy_of(session.policy))
    if until is not None:
        failures = f"{session.failures} consecutive failures"
        return f"refused: {failures}, next attempt after {until:%Y-%m-%d %H:%M:%S} UTC"
    return ""


def compaction_request(
    *, session: AgentSession, reason: str, instructions: str = "", policy: Policy | None = None
) -> Compaction:
    """Compact a session for a user: queue it if a model may summarize, else compact immediately.

    Raises `CompactionInProgress`.
    """
    if missing := summarizer_missing(session.project):
        return session_compact(
            session=session,
            trigger=requested.USER.name,
            reason=reason,
            instructions=instructions,
            policy=policy,
            fallback=missing,
        )
    with transaction.atomic():
        locked = AgentSession.objects.select_for_update().get(pk=session.pk)
        require_none_in_progress(locked)
        return compaction_open(
            session=locked,
            trigger=requested.USER.name,
            state=Compaction.State.PENDING,
            policy=policy,
            reason=reason,
            instructions=instructions,
        )


def idle_sessions_compact() -> int:
    """Compact idle sessions whose policy enables the idle trigger. Returns their number."""
    now = timezone.now()
    rows = AgentSession.objects.filter(
        Q(fired_turn=None) | Q(fired_turn__lt=F("turn_count")),
        policy__has_key="idle_seconds",
        last_active_at__range=(now - _MAX_IDLE, now),
    )
    # Most idle sessions are below their targets and must not fill the batch.
    found = rows.only(*_READ).order_by("last_active_at").iterator()
    ids = list(islice((session.pk for session in found if _is_triggered(session, now)), _IDLE_BATCH))
    return sum(_compact_if_idle(session_id, now) for session_id in ids)


@transaction.atomic
def _compact_if_idle(session_id: UUID, now: datetime) -> bool:
    """Queue the compaction of a session, unless it is no longer idle. Returns whether it was queued.

    A session that another writer has locked is not idle.
    """
    session = AgentSession.objects.select_for_update(skip_locked=True).filter(pk=session_id).first()
    if session is None or not _is_triggered(session, now):
        return False
    compaction_queue_or_skip(session, idle.TRIGGER.name)
    return True


def _is_triggered(session: AgentSession, now: datetime) -> bool:
    """Return whether the idle trigger fires, whether or not another trigger would."""
    policy = policy_of(session.policy)
    state = TriggerState(
        tokens=session_calibration(session).provider(TokenBreakdown(tokens=session.shown_components).total),
        budget=session_budget(session),
        compacted_tokens=session.fired_tokens,
        idle_seconds=int((now - session.last_active_at).total_seconds()),
        open_calls=len(session.open_calls),
        has_provider_engine=is_compacted_by_provider(policy, session.format),
    )
    return fires(idle.TRIGGER, state, policy)
