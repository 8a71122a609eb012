"""Hard: the prompt is about to outgrow the budget. Acts at once, and even inside an open tool loop."""

from __future__ import annotations

from compaction.policy import Policy
from compaction.triggers.state import TriggerState

NAME = "hard"
MEANING = "The prompt had reached the limit that no prompt may pass; done at once, before the next call."
BACKGROUND = False


def fires(state: TriggerState, policy: Policy) -> bool:
    return policy.hard > 0 and state.occupancy >= policy.hard
