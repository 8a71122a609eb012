"""Turns: every so many turns since the last compaction, whatever the size."""

from __future__ import annotations

from compaction.policy import Policy
from compaction.triggers.state import TriggerState

NAME = "turns"
MEANING = "So many turns had come; done in the background."
BACKGROUND = True


def fires(state: TriggerState, policy: Policy) -> bool:
    return policy.every_turns > 0 and state.turns_since_fired >= policy.every_turns
