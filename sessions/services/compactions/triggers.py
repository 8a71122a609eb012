"""Triggers outside of a push: a user asks for a compaction, or a session has gone idle."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from compaction.breakdown import TokenBreakdown
from compaction.policy import Policy
from compaction.triggers import TriggerState, evaluate, idle, user
from sessions.models import AgentSession, Compaction
from sessions.selectors.summarizers import summarizer_missing
from sessions.selectors.token_budgets import policy_of
from sessions.services.compactions.apply import (
    CompactionInProgress,
    compaction_in_progress,
    compaction_open,
    compaction_queue,
    session_compact,
)
from sessions.services.compactions.planning import session_budget

#: Sessions that have been idle for longer are left as they are.
_IDLE_AT_MOST = timedelta(days=1)
#: Sessions that one pass looks at.
_IDLE_BATCH = 500


def compaction_queue_or_skip(session: AgentSession, trigger: str) -> Compaction:
    """A compaction for a worker, or the record of why there is none. The session is locked.

    Either moves the re-fire cursor, so that what is refused is asked for again only when the prompt has
    grown.
    """
    policy = policy_of(session.policy)
    reason = _refusal(session, policy)
    if not reason:
        return compaction_queue(session=session, trigger=trigger, policy=policy)
    skipped = Compaction.State.SKIPPED
    return compaction_open(session=session, trigger=trigger, state=skipped, policy=policy, reason=reason)


def _refusal(session: AgentSession, policy: Policy) -> str:
    """Why nothing can be tried in the background now; "" where it can."""
    other = compaction_in_progress(session)
    if other is not None:
        return f"refused: compaction {other.number} is under way"
    until = breaker_until(session, policy)
    if until is not None:
        return f"refused: {session.failures} failures in a row, next try after {until:%Y-%m-%d %H:%M:%S} UTC"
    return ""


def breaker_until(session: AgentSession, policy: Policy) -> datetime | None:
    """The circuit breaker: until when nothing is tried, None where it is closed. After the cool-down one try
    goes through; where it fails too, the next cool-down begins."""
    if session.failures < policy.max_failures or session.failed_at is None:
        return None
    until = session.failed_at + timedelta(seconds=settings.CONTEXTAPP_COOLDOWN_SECONDS)
    return until if until > timezone.now() else None


def compaction_request(
    *, session: AgentSession, reason: str, instructions: str = "", policy: Policy | None = None
) -> Compaction:
    """Somebody wants a compaction: a pending one where a model may summarise, else one that is done.

    Raises `CompactionInProgress` where another is under way.
    """
    if summarizer_missing(session.project):
        return session_compact(
            session=session,
            trigger=user.TRIGGER.name,
            reason=reason,
            instructions=instructions,
            policy=policy,
        )
    with transaction.atomic():
        locked = AgentSession.objects.select_for_update().get(pk=session.pk)
        if compaction_in_progress(locked) is not None:
            raise CompactionInProgress(str(session.pk))
        return compaction_queue(
            session=locked,
            trigger=user.TRIGGER.name,
            policy=policy or policy_of(locked.policy),
            reason=reason,
            instructions=instructions,
        )


def idle_sessions_compact() -> int:
    """Fires for the sessions that have gone idle, where their policy asks for it; how many did."""
    now = timezone.now()
    rows = AgentSession.objects.filter(
        Q(fired_turn=None) | Q(fired_turn__lt=F("turn_count")),
        policy__has_key="idle_seconds",
        last_active_at__range=(now - _IDLE_AT_MOST, now),
    )
    ids = list(rows.order_by("last_active_at").values_list("pk", flat=True)[:_IDLE_BATCH])
    return sum(_idle_fire(session_id, now) for session_id in ids)


@transaction.atomic
def _idle_fire(session_id: UUID, now: datetime) -> bool:
    """Looks again under the lock. A session that somebody else holds is not idle."""
    session = AgentSession.objects.select_for_update(skip_locked=True).filter(pk=session_id).first()
    if session is None:
        return False
    policy = policy_of(session.policy)
    state = TriggerState(
        tokens=round(TokenBreakdown(tokens=session.shown_components).total * session.calibration),
        budget=session_budget(session),
        compacted_tokens=session.fired_tokens,
        idle_seconds=int((now - session.last_active_at).total_seconds()),
        open_calls=len(session.open_calls),
    )
    trigger = evaluate(state, policy)
    if trigger is None or trigger is not idle.TRIGGER:
        return False
    compaction_queue_or_skip(session, trigger.name)
    return True
