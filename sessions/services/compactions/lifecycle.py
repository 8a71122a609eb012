"""The life cycle of a compaction's row: open, skip and fail it."""

from __future__ import annotations

from typing import LiteralString

from django.utils import timezone

from compaction.policy import Policy
from compaction.sizes.breakdown import TokenBreakdown
from compaction.triggers import TRIGGERS
from sessions.models import AgentSession, Compaction, WebhookEvent
from sessions.selectors.token_budgets import policy_of, session_calibration
from sessions.services.commits import after_commit
from sessions.services.dispatch import COMPACTION_RUN, task_dispatch
from sessions.services.webhooks.deliveries import compaction_event_emit
from sessions.store.postgres import rows_fetch

_NEWEST: LiteralString = (
    "SELECT coalesce(max(number), 0) FROM agent_sessions_compaction WHERE session_id = %s"
)


class CompactionInProgress(Exception):
    """Another compaction of the session is pending or running."""


def compaction_open(
    *,
    session: AgentSession,
    trigger: str,
    state: Compaction.State = Compaction.State.RUNNING,
    policy: Policy | None = None,
    reason: str = "",
    instructions: str = "",
    upgrades: Compaction | None = None,
) -> Compaction:
    """Create the row of a compaction. The caller has locked the session.

    A pending compaction is dispatched after the commit. The caller ends a running one in its transaction: it
    applies it, or skips or fails it and moves the re-trigger cursor. Without `policy`, it is that of the
    session. Raises KeyError for an unregistered trigger, because pages need a description of every recorded
    trigger.
    """
    now = timezone.now()
    compaction = Compaction.objects.create(
        session=session,
        number=newest_number(session) + 1,
        state=state,
        trigger=TRIGGERS[trigger].name,
        reason=reason,
        instructions=instructions,
        turn_index=max(session.turn_count - 1, 0),
        snapshot_position=session.message_count,
        policy=(policy or policy_of(session.policy, model=session.model)).to_json(),
        tokens_before=TokenBreakdown(tokens=session.shown_components).total,
        upgrades=upgrades,
        dispatched_at=now,
        started_at=now if state == Compaction.State.RUNNING else None,
        finished_at=None if state in Compaction.OPEN else now,
    )
    if state == Compaction.State.RUNNING:
        # Its end moves the cursor. After a second update, Postgres would also lock the parent of a fork, for
        # which a recording that has locked the parent, and waits for the fork, would be a deadlock.
        compaction_event_emit(compaction=compaction, event=WebhookEvent.STARTED)
        return compaction
    cursor_move(session)
    if state == Compaction.State.PENDING:
        after_commit(task_dispatch, COMPACTION_RUN, compaction.pk)
    return compaction


def cursor_move(session: AgentSession) -> None:
    """Move the re-trigger cursor to the current prompt. The caller has locked the session."""
    shown = TokenBreakdown(tokens=session.shown_components).total
    session.fired_tokens = session_calibration(session).provider(shown)
    session.fired_turn, session.plan_turn = session.turn_count, None
    session.save(update_fields=["fired_tokens", "fired_turn", "plan_turn"])


def newest_number(session: AgentSession) -> int:
    """Return the number of the session's newest compaction in any state, 0 if there is none."""
    [(newest,)] = rows_fetch(_NEWEST, [session.pk])
    return int(newest)


def compaction_in_progress(session: AgentSession) -> Compaction | None:
    """Return the pending or running compaction of the session, None if there is none."""
    return Compaction.objects.filter(session=session, state__in=Compaction.OPEN).first()


def require_none_in_progress(session: AgentSession) -> None:
    """Raise `CompactionInProgress` if a compaction of the session is pending or running."""
    if compaction_in_progress(session) is not None:
        raise CompactionInProgress(str(session.pk))


def compaction_supersede(*, session: AgentSession, reason: str) -> None:
    """Skip the compaction in progress, if there is one. The caller has locked the session."""
    other = compaction_in_progress(session)
    if other is not None:
        compaction_skip(compaction=other, reason=reason)


def compaction_skip(*, compaction: Compaction, reason: str) -> None:
    """End an open compaction without effect. The caller has locked the session."""
    _end(compaction, Compaction.State.SKIPPED, reason)


def compaction_fail(*, compaction: Compaction, reason: str) -> None:
    """End an open compaction that cannot be completed. The caller has locked the session."""
    _end(compaction, Compaction.State.FAILED, reason)


def _end(compaction: Compaction, state: Compaction.State, reason: str) -> None:
    compaction.state, compaction.reason, compaction.finished_at = state, reason, timezone.now()
    compaction.save(update_fields=["state", "reason", "finished_at", "cost_microusd", *Compaction.RECORD])
    compaction_event_emit(compaction=compaction, event=WebhookEvent.FINISHED)
