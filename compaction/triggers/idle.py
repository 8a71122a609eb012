"""Idle: nobody waits, so the next turn may start clean. Only where there is something to gain."""

from __future__ import annotations

from compaction.policy import Policy
from compaction.triggers.state import TriggerState

NAME = "idle"
MEANING = "The session had been idle; done in the background."
BACKGROUND = True


def fires(state: TriggerState, policy: Policy) -> bool:
    due = policy.idle_seconds > 0 and state.idle_seconds >= policy.idle_seconds
    return due and state.occupancy > policy.target
