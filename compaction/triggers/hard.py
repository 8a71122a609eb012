"""Hard: the prompt is about to exceed the budget. Compacts immediately, even inside an open tool loop."""

from __future__ import annotations

from compaction.policy import Policy
from compaction.triggers.base import Trigger, TriggerState


def condition(state: TriggerState, policy: Policy) -> bool:
    return policy.hard > 0 and state.occupancy >= policy.hard


def is_urgent(state: TriggerState, policy: Policy) -> bool:
    return state.tokens > state.budget


TRIGGER = Trigger(
    name="hard",
    meaning="The prompt reached the hard limit; compacted immediately, before the next call.",
    description="The prompt reaches 95% of the budget (`hard`). Immediately, even inside an open tool loop.",
    condition=condition,
    is_urgent=is_urgent,
)
