"""User: somebody asked."""

from __future__ import annotations

from compaction.policy import Policy
from compaction.triggers.state import TriggerState

NAME = "user"
MEANING = "Somebody asked for it."
BACKGROUND = False


def fires(state: TriggerState, policy: Policy) -> bool:
    return state.asked
