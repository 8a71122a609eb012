"""Triggers of a push: decide from counters whether to compact, then compact or queue the compaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from accounts.models import Project
from compaction.capabilities import capabilities_of
from compaction.messages import Thinking
from compaction.provider_engine import is_compacted_by_provider
from compaction.sizes.breakdown import TokenBreakdown
from compaction.triggers import Trigger, TriggerState, evaluate, requested
from sessions.models import AgentSession, Compaction, TurnSource
from sessions.selectors.memory.revisions import memory_latest, memory_notes
from sessions.selectors.summarizers import is_soft_trigger_possible, is_soft_trigger_used
from sessions.selectors.token_budgets import policy_of
from sessions.services.compactions.apply import session_compact
from sessions.services.compactions.given_edits import tools_restore
from sessions.services.compactions.planning import edits_in_force
from sessions.services.compactions.provider import provider_compaction_record
from sessions.services.compactions.thinking import prompt_changes_after, thinking_clear
from sessions.services.compactions.triggers import compaction_queue_or_skip
from sessions.services.push.values import NewTurn, Push

#: Steps that do not read the content of messages, for sessions on which the other steps fail.
CRUDE_STEPS = ("drop_oldest", "shed", "last_resort")


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggered:
    """The compactions that a push triggered, and the breakdown of the prompt after them."""

    compactions: tuple[Compaction, ...] = ()
    shown: TokenBreakdown


def trigger_evaluate(turn: NewTurn) -> Trigger | None:
    """Return the trigger that the turn fires. Reads further data only for background triggers."""
    trigger = trigger_possible(turn)
    if trigger is requested.THINKING:
        if _has_outdated_thinking(turn):
            return trigger
        trigger = _of_state(turn)
    if trigger is None or not trigger.is_background:
        return trigger
    state = replace(
        _state(turn),
        planned_turns=_turns_since_planned(turn.session.id, turn.index),
        is_soft_used=is_soft_trigger_used(
            turn.session.policy, Project.objects.get(pk=turn.session.project_id)
        ),
    )
    return evaluate(state, policy_of(turn.session.policy))


def trigger_possible(turn: NewTurn) -> Trigger | None:
    """Return the trigger that the turn may fire. Stored data, which is not read, may rule it out."""
    trigger = _of_state(turn)
    if (trigger is None or trigger.is_background) and _may_have_outdated_thinking(turn):
        return requested.THINKING
    return trigger


def _may_have_outdated_thinking(turn: NewTurn) -> bool:
    """Return whether thinking in the prompt may be bound to a prompt that is not the session's now."""
    if turn.is_repaired:
        return capabilities_of(turn.model).bound_thinking
    may_have_changed = turn.session.fired_turn == turn.index or turn.has_other_prompt
    if not may_have_changed or not capabilities_of(turn.model).bound_thinking:
        return False
    return any(isinstance(part, Thinking) for message in turn.values for part in message.parts)


def _has_outdated_thinking(turn: NewTurn) -> bool:
    if turn.is_repaired or (turn.has_other_prompt and edits_in_force(turn.session.id)):
        return True
    return prompt_changes_after(turn.session.id, turn.index, source=turn.source)


def _of_state(turn: NewTurn) -> Trigger | None:
    """Return the trigger that the session's state fires."""
    return evaluate(_state(turn), policy_of(turn.session.policy))


def _state(turn: NewTurn) -> TriggerState:
    session = turn.session
    return TriggerState(
        tokens=turn.calibration.provider_at_most(turn.shown.total),
        budget=turn.budget,
        compacted_tokens=session.fired_tokens,
        turns_since_compaction=turn.index + 1 - (session.fired_turn or 0),
        open_calls=len(turn.continuation.open_calls),
        is_soft_used=is_soft_trigger_possible(session.policy),
        has_provider_engine=turn.is_stateful
        or is_compacted_by_provider(policy_of(session.policy), turn.format),
    )


def triggers_run(turn: NewTurn, push: Push) -> Triggered:
    """Run what a stored turn triggers, in the transaction of the push, and record what the provider did."""
    if push.has_provider_compaction:
        recorded = provider_compaction_record(
            session_id=turn.session.id, report=push.provider, messages=turn.values
        )
        if recorded is not None:
            return Triggered(compactions=(recorded,), shown=_shown(turn.session.id))
    restored = tools_restore(turn.session.id) if turn.has_room_for_shed_tools else None
    made = [each for each in (restored, _cleared_by_preamble(turn, push)) if each]
    trigger = trigger_evaluate(turn)
    if turn.needs_shed_tools and not made and (trigger is None or trigger.is_background):
        trigger = requested.RESTORE
    triggered = _compaction_trigger(turn, trigger) if trigger else Triggered(shown=turn.shown)
    if not made:
        return triggered
    return Triggered(compactions=(*made, *triggered.compactions), shown=_shown(turn.session.id))


def _cleared_by_preamble(turn: NewTurn, push: Push) -> Compaction | None:
    """Remove all thinking if the turn changes the system prompt or the tools, to which it is bound as well.

    A client of the gateway sends them with each call, and its provider has accepted them.
    """
    if push.source is TurnSource.GATEWAY or not turn.changes_preamble or turn.index == 0:
        return None
    if not capabilities_of(turn.model).bound_thinking:
        return None
    return thinking_clear(turn.session.id, first=0, reason="the system prompt or the tools changed")


def _shown(session_id: UUID) -> TokenBreakdown:
    rows = AgentSession.objects.filter(pk=session_id)
    return TokenBreakdown(tokens=rows.values_list("shown_components", flat=True).get())


def _compaction_trigger(turn: NewTurn, trigger: Trigger) -> Triggered:
    """Compact the session, or queue the compaction."""
    if trigger.is_background:
        session = AgentSession.objects.get(pk=turn.session.id)
        return Triggered(compactions=(compaction_queue_or_skip(session, trigger.name),), shown=turn.shown)
    if trigger is requested.THINKING:
        first, reason = turn.first_position, "the prompt changed while the model was answering"
        if turn.is_repaired:
            first, reason = 0, "the provider rejected thinking in the prompt"
        elif turn.has_other_prompt:
            first, reason = 0, "the gateway forwarded another prompt"
        cleared = thinking_clear(turn.session.id, first=first, reason=reason)
        return Triggered(compactions=(cleared,) if cleared else (), shown=_shown(turn.session.id))
    session = AgentSession(pk=turn.session.id)  # `session_compact` loads the session when it locks it
    compactions = [session_compact(session=session, trigger=trigger.name, supersede=True)]
    if compactions[0].state == Compaction.State.FAILED:
        policy = replace(policy_of(turn.session.policy, model=turn.model), steps=CRUDE_STEPS)
        compactions.append(session_compact(session=session, trigger=trigger.name, policy=policy))
    return Triggered(compactions=tuple(compactions), shown=_shown(session.pk))


def _turns_since_planned(session_id: UUID, turn: int) -> int | None:
    """Return how many turns ago the working memory's `next` was written, or None if it is empty."""
    notes = memory_notes(memory_latest(session_id=session_id))
    planned = notes.memory.next
    return turn - notes.origin("next", planned).turn if planned else None
