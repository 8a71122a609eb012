"""Soft: time to compact in the background, before the hard trigger has to."""

from __future__ import annotations

from compaction.policy import Policy
from compaction.triggers.state import TriggerState

NAME = "soft"
MEANING = "The prompt came near the limit; done in the background."
BACKGROUND = True


def fires(state: TriggerState, policy: Policy) -> bool:
    return policy.soft > 0 and state.occupancy >= policy.soft
