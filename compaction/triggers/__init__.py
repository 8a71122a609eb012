"""When to compact: a file a trigger, and a line here.

    evaluate(state, policy) -> Firing | None

Three rules stand over all of them. The re-fire cursor: none fires again before the prompt has grown by
`refire_delta` since the last time. The quiet point: none but hard fires while a tool call is open, for a
summary in the middle of an action loses the plan. The circuit breaker: after `max_failures` failures in a
row nothing is tried in the background.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from compaction.policy import Policy
from compaction.triggers import hard, idle, soft, turns, user
from compaction.triggers.state import TriggerState

__all__ = ["TRIGGERS", "Firing", "Trigger", "TriggerState", "evaluate"]


class Trigger(Protocol):
    """What a trigger's module offers."""

    NAME: str
    BACKGROUND: bool

    def fires(self, state: TriggerState, policy: Policy) -> bool: ...


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
    return state.open_calls == 0 and state.failures < policy.max_failures


def _has_grown(state: TriggerState, policy: Policy) -> bool:
    """The re-fire cursor."""
    if state.fired_tokens is None:
        return True
    return state.tokens - state.fired_tokens >= policy.refire_delta * state.budget
