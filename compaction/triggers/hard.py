"""Hard: the prompt is about to outgrow the budget. Acts at once, and even inside an open tool loop."""

from __future__ import annotations

from compaction.policy import Policy
from compaction.triggers.state import TriggerState

NAME = "hard"
BACKGROUND = False


def fires(state: TriggerState, policy: Policy) -> bool:
    return policy.hard > 0 and state.occupancy >= policy.hard
