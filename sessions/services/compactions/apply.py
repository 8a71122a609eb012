"""Run compactions synchronously, and apply plans: record, edits, recap and prompt snapshot."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from compaction.planning.pipeline import Plan
from compaction.planning.record import PlanState
from compaction.policy import Policy
from compaction.sizes.breakdown import TokenBreakdown
from compaction.sizes.calibration import Calibration
from sessions.models import AgentSession, Compaction, WebhookEvent
from sessions.selectors.token_budgets import session_calibration
from sessions.services.compactions.lifecycle import (
    compaction_fail,
    compaction_open,
    compaction_supersede,
    cursor_move,
    require_none_in_progress,
)
from sessions.services.compactions.planning import Loaded, failure_reason, session_plan, view_load
from sessions.services.compactions.recaps import EXTRACTED, RecapOrigin, recap_parameters
from sessions.services.compactions.statements import APPLY, edit_parameters
from sessions.services.prompts.served import next_prompt_turn
from sessions.services.webhooks.deliveries import compaction_event_emit
from sessions.store.continuation_columns import continuation_columns
from sessions.store.postgres import row_fetch
from sessions.store.prompt_bytes import messages_of_view

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimit:
    """The budget of a prompt in tokens, as counted by the model with this calibration."""

    budget: int
    calibration: Calibration


@transaction.atomic
def session_compact(
    *,
    session: AgentSession,
    trigger: str,
    reason: str = "",
    instructions: str = "",
    policy: Policy | None = None,
    supersede: bool = False,
    fallback: str = "",
    limit: PlanLimit | None = None,
) -> Compaction:
    """Compact a session synchronously, without a model. Locks the session.

    If another compaction is in progress, `supersede` ends it; otherwise raises `CompactionInProgress`. If
    planning fails, the compaction fails with the reason, and the prompt remains unchanged. `fallback` is why
    no model writes the recap, for the record. `limit` takes the place of the session's own budget.
    """
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    if limit is not None:
        # Not stored: the plan reads them from this object.
        locked.budget_tokens, locked.calibration = limit.budget, limit.calibration.to_json()
    if supersede:
        compaction_supersede(session=locked, reason=f"superseded by the {trigger} trigger")
    else:
        require_none_in_progress(locked)
    compaction = compaction_open(
        session=locked, trigger=trigger, policy=policy, reason=reason, instructions=instructions
    )
    try:
        with transaction.atomic():
            loaded = view_load(locked, shortens=True)
            plan = session_plan(loaded, trigger=trigger, policy=policy)
            notes = {"fallback": fallback} if fallback and plan.record.has_recap else {}
            return compaction_apply(
                compaction=compaction, loaded=loaded, plan=plan, origin=RecapOrigin(notes=notes)
            )
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        log.exception("compaction %s could not be planned", compaction.pk)
        compaction.refresh_from_db()
        cursor_move(locked)
        compaction_fail(compaction=compaction, reason=failure_reason(error, compaction.pk))
        return compaction


def compaction_apply(
    *, compaction: Compaction, loaded: Loaded, plan: Plan, origin: RecapOrigin = EXTRACTED
) -> Compaction:
    """Apply a plan, or skip the compaction if the plan has no effect. The caller has locked the session."""
    session, is_done = loaded.session, plan.record.state is PlanState.DONE
    compaction.state = Compaction.State.DONE if is_done else Compaction.State.SKIPPED
    if not is_done:
        compaction.reason = f"no gain: {plan.record.reason or 'the prompt would not be shorter'}"
    shown = TokenBreakdown.of_view(plan.view)
    _store_record(compaction, loaded, plan, origin, shown)
    session.fired_tokens = session_calibration(session).provider(plan.record.tokens_after)
    session.fired_turn, session.plan_turn = session.turn_count, None
    if is_done:
        session.compaction_count += 1
        _store_effects(compaction, loaded, plan, origin, shown)
    else:
        session.save(update_fields=["fired_tokens", "fired_turn", "plan_turn"])
    compaction_event_emit(compaction=compaction, event=WebhookEvent.FINISHED)
    return compaction


def _store_record(
    compaction: Compaction, loaded: Loaded, plan: Plan, origin: RecapOrigin, shown: TokenBreakdown
) -> None:
    compaction.turn_index = max(loaded.session.turn_count - 1, 0)
    compaction.first_turn = next_prompt_turn(loaded.session)
    compaction.snapshot_position = loaded.session.message_count
    compaction.tokens_before = plan.record.tokens_before
    compaction.tokens_after = plan.record.tokens_after
    components = {"before": TokenBreakdown.of_view(loaded.view).tokens, "after": shown.tokens}
    compaction.record = {**plan.record.to_json(), **origin.notes, "components": components}
    compaction.cost_microusd = origin.cost_microusd
    compaction.finished_at = timezone.now()
    compaction.save()


def _store_effects(
    compaction: Compaction, loaded: Loaded, plan: Plan, origin: RecapOrigin, shown: TokenBreakdown
) -> None:
    """Store the result of a plan: the edits, the recap, the prompt snapshot and the session's counters."""
    session = loaded.session
    messages, after = messages_of_view(plan.view, loaded.raw, session.format)
    # Store the recap even if a later step evicted it, so that the next plan can continue it.
    recap = plan.recap if plan.recap is not loaded.previous else None
    parameters = {
        "session": session.pk,
        "compaction": compaction.pk,
        "fired_tokens": session.fired_tokens,
        "shown": dict(shown.tokens),
        **continuation_columns(after),
        **edit_parameters(plan.edits, loaded.view, loaded.edits, messages, base=loaded.base),
        **recap_parameters(recap, plan.edits, origin),
    }
    row_fetch(APPLY, parameters)
