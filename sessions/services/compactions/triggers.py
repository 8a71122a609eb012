"""What fires: behind a push, when somebody asks, when a session has gone idle. Decided from counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from compaction.breakdown import TokenBreakdown
from compaction.policy import Policy
from compaction.triggers import Trigger, TriggerState, evaluate, idle, soft, user
from sessions.models import AgentSession, Compaction
from sessions.selectors.memory import memory_latest, memory_notes
from sessions.selectors.summarizers import summarizer_missing
from sessions.selectors.token_budgets import budget_tokens, policy_of
from sessions.services.compactions.apply import (
    CompactionOpen,
    compaction_fire,
    compaction_open,
    compaction_under_way,
    session_compact,
)
from sessions.services.compactions.planning import session_budget
from sessions.services.push.push import Fired
from sessions.services.push.values import Pushed

#: Sessions that have been idle for longer are left as they are.
_IDLE_AT_MOST = timedelta(days=1)
#: Sessions that one pass looks at.
_IDLE_BATCH = 500


class PushTrigger:
    """The triggers of a push: one that acts at once is deterministic, the others leave it to a worker."""

    def due(self, pushed: Pushed) -> Trigger | None:
        session = pushed.session
        policy = policy_of(session.policy)
        state = TriggerState(
            tokens=round(pushed.shown.total * pushed.calibration),
            budget=push_budget(pushed),
            compacted_tokens=session.fired_tokens,
            turns_since_compaction=pushed.turn + 1 - (session.fired_turn or 0),
            open_calls=len(pushed.seam.open_calls),
        )
        trigger = evaluate(state, policy)
        if trigger is None or not trigger.is_background:
            return trigger
        if _gains_nothing(trigger, session.policy):
            return None
        # The memory is looked at only where something is about to fire.
        planned = _planned_turns(session.id, pushed.turn)
        return evaluate(replace(state, planned_turns=planned), policy)

    def act(self, pushed: Pushed, trigger: Trigger) -> Fired:
        if trigger.is_background:
            row = AgentSession.objects.get(pk=pushed.session.id)
            return Fired(told=[fired_json(background_fire(row, trigger.name))], shown=pushed.shown)
        row = AgentSession(pk=pushed.session.id)  # it is read where it is locked
        compaction = session_compact(session=row, trigger=trigger.name, supersede=True)
        row.refresh_from_db(fields=["shown_components"])
        return Fired(told=[fired_json(compaction)], shown=TokenBreakdown(tokens=row.shown_components))


def _gains_nothing(trigger: Trigger, policy: Mapping[str, Any]) -> bool:
    """Whether to let the soft trigger pass: no model would summarise, and nobody asked for it by name.

    Without a model the hard trigger does the same work later, and so less often: 0.47 of the raw input cost
    against 0.57 on recorded sessions (docs/compaction.md).
    """
    return trigger is soft.TRIGGER and not settings.CONTEXTAPP_ANTHROPIC_API_KEY and "soft" not in policy


def _planned_turns(session_id: UUID, turn: int) -> int | None:
    """How many turns ago the working memory's `next` was written; None where it is empty."""
    notes = memory_notes(memory_latest(session_id=session_id))
    planned = notes.memory.next
    return turn - notes.origin("next", planned).turn if planned else None


def push_budget(pushed: Pushed) -> int:
    session = pushed.session
    return budget_tokens(own=session.budget_tokens, context_window=session.context_window, model=pushed.model)


def fired_json(compaction: Compaction) -> dict[str, Any]:
    return {
        "trigger": compaction.trigger,
        "compaction": compaction.number,
        "state": compaction.state,
        "reason": compaction.reason or compaction.record.get("reason", ""),
    }


def background_fire(session: AgentSession, trigger: str) -> Compaction:
    """A compaction for a worker, or the record of why there is none. The session is locked.

    Either moves the re-fire cursor, so that what is refused is asked for again only when the prompt has
    grown.
    """
    policy = policy_of(session.policy)
    reason = _refusal(session, policy)
    if not reason:
        return compaction_fire(session=session, trigger=trigger, policy=policy)
    skipped = Compaction.State.SKIPPED
    return compaction_open(session=session, trigger=trigger, state=skipped, policy=policy, reason=reason)


def _refusal(session: AgentSession, policy: Policy) -> str:
    """Why nothing can be tried in the background now; "" where it can."""
    other = compaction_under_way(session)
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


def compaction_ask(
    *, session: AgentSession, reason: str, instructions: str = "", policy: Policy | None = None
) -> Compaction:
    """Somebody wants a compaction: a pending one where a model may summarise, else one that is done.

    Raises `CompactionOpen` where another is under way.
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
        if compaction_under_way(locked) is not None:
            raise CompactionOpen(str(session.pk))
        return compaction_fire(
            session=locked,
            trigger=user.TRIGGER.name,
            policy=policy or policy_of(locked.policy),
            reason=reason,
            instructions=instructions,
        )


def idle_fire() -> int:
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
    background_fire(session, trigger.name)
    return True
