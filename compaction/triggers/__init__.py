"""When to compact: a file a trigger, and a line here.

    evaluate(state, policy) -> Firing | None

Three rules stand over all of them. The re-fire cursor: none fires again before the prompt has grown by
`refire_delta` since the last time. The quiet point: none but hard fires while a tool call is open, for a
summary in the middle of an action loses the plan; and an action that the agent has just planned, in the
`next` of its working memory, is left the turns to be done in. The circuit breaker: after `max_failures`
failures in a row nothing is tried in the background.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from compaction.policy import Policy
from compaction.triggers import hard, idle, soft, turns, user
from compaction.triggers.state import TriggerState

__all__ = ["TRIGGERS", "Firing", "Trigger", "TriggerState", "evaluate"]


class Trigger(Protocol):
    """What a trigger's module offers. `MEANING` tells people in a line why it fired."""

    NAME: str
    MEANING: str
    BACKGROUND: bool

    def fires(self, state: TriggerState, policy: Policy) -> bool: ...


#: How many turns a planned action is left to be carried out: the call, and what came of it.
PLAN_TURNS = 2

#: In the order of their precedence.
TRIGGERS: tuple[Trigger, ...] = (user, hard, soft, turns, idle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """The trigger that fired, and whether the work is for the background."""

    trigger: str
    background: bool


def evaluate(state: TriggerState, policy: Policy) -> Firing | None:
    """The first trigger that fires and may, None where none does."""
    for trigger in TRIGGERS:
        if trigger.fires(state, policy) and _may(trigger, state, policy):
            return Firing(trigger=trigger.NAME, background=trigger.BACKGROUND)
    return None


def _may(trigger: Trigger, state: TriggerState, policy: Policy) -> bool:
    if trigger.NAME == user.NAME:
        return True
    if trigger.NAME == hard.NAME and state.tokens > state.budget:
        return True  # over the budget nothing may hold it back
    if not _has_grown(state, policy):
        return False
    if not trigger.BACKGROUND:
        return True
    if state.failures >= policy.max_failures:
        return False
    return state.open_calls == 0 and not _plan_in_flight(trigger, state, policy)


def _plan_in_flight(trigger: Trigger, state: TriggerState, policy: Policy) -> bool:
    """Whether to wait for what was just planned. An agent may plan anew at each turn, so the wait has an
    end: soft waits no further than `refire_delta`, turns no longer than `PLAN_TURNS`."""
    if state.planned_turns is None or state.planned_turns >= PLAN_TURNS:
        return False
    if trigger.NAME == soft.NAME:
        return state.occupancy < policy.soft + policy.refire_delta
    if trigger.NAME == turns.NAME:
        return state.turns_since_fired < policy.every_turns + PLAN_TURNS
    return False  # who has gone idle is not at work on a plan


def _has_grown(state: TriggerState, policy: Policy) -> bool:
    """The re-fire cursor."""
    if state.fired_tokens is None:
        return True
    return state.tokens - state.fired_tokens >= policy.refire_delta * state.budget
