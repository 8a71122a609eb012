"""The triggers. To add one, write its module with a `TRIGGER` and list the module here.

    evaluate(state, policy) -> Trigger | None
    fires(trigger, state, policy) -> bool

Two rules limit all triggers. Re-fire delta: after a compaction, no trigger fires until the prompt has grown
by `refire_delta`. Quiet point: no background trigger fires while a tool call is open, because a summary in
the middle of an action would lose the plan; an action that the agent has just planned, in the `next` field of
its working memory, has a few turns to complete. The circuit breaker of background compactions is part of the
store, which records failures.
"""

from __future__ import annotations

from importlib import import_module

from compaction.policy import Policy
from compaction.triggers.base import PLAN_TURNS, Trigger, TriggerState
from compaction.triggers.requested import REQUESTED

__all__ = ["TRIGGERS", "Trigger", "TriggerState", "evaluate", "fires"]

#: The triggers with a condition, in order of precedence.
_MODULES = ("hard", "soft", "turns", "idle")


def _load(module: str) -> Trigger:
    trigger: Trigger = import_module(f"{__name__}.{module}").TRIGGER
    return trigger


TRIGGERS: dict[str, Trigger] = {trigger.name: trigger for trigger in (*map(_load, _MODULES), *REQUESTED)}


def evaluate(state: TriggerState, policy: Policy) -> Trigger | None:
    """Return the first trigger that fires, or None."""
    return next((trigger for trigger in TRIGGERS.values() if fires(trigger, state, policy)), None)


def fires(trigger: Trigger, state: TriggerState, policy: Policy) -> bool:
    """Return whether the trigger's condition is met and no rule prevents it from firing."""
    if state.has_provider_engine or not trigger.condition(state, policy):
        return False
    if trigger.is_urgent(state, policy):
        return True
    if not _has_grown(state, policy):
        return False
    if not trigger.is_background:
        return True
    return state.open_calls == 0 and not (_has_new_plan(state) and trigger.waits_for_plan(state, policy))


def _has_new_plan(state: TriggerState) -> bool:
    return state.planned_turns is not None and state.planned_turns < PLAN_TURNS


def _has_grown(state: TriggerState, policy: Policy) -> bool:
    """Return whether the prompt has grown by the re-fire delta."""
    if state.compacted_tokens is None:
        return True
    return state.tokens - state.compacted_tokens >= policy.refire_delta * state.budget
