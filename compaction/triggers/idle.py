"""Idle: the agent is not waiting, so compact before its next turn if the prompt is above the target."""

from __future__ import annotations

from compaction.policy import Policy
from compaction.triggers.base import Trigger, TriggerState


def condition(state: TriggerState, policy: Policy) -> bool:
    is_idle = policy.idle_seconds > 0 and state.idle_seconds >= policy.idle_seconds
    return is_idle and state.occupancy > policy.target


TRIGGER = Trigger(
    name="idle",
    meaning="The session was idle; compacted in the background.",
    description="No turn for N seconds (`idle_seconds`, off by default), and the prompt is above the target. "
    "In the background.",
    condition=condition,
    is_background=True,
)
