"""Soft: compact in the background, before the hard trigger fires."""

from __future__ import annotations

from compaction.policy import Policy
from compaction.triggers.base import Trigger, TriggerState


def condition(state: TriggerState, policy: Policy) -> bool:
    return state.is_soft_used and policy.soft > 0 and state.occupancy >= policy.soft


def waits_for_plan(state: TriggerState, policy: Policy) -> bool:
    """Wait up to `refire_delta` above the threshold, because an agent may plan a new action in every turn."""
    return state.occupancy < policy.soft + policy.refire_delta


TRIGGER = Trigger(
    name="soft",
    meaning="The prompt approached the limit; compacted in the background.",
    description="The prompt reaches 70% of the budget (`soft`). In the background, so that a model's summary "
    "is ready in time. Without a summarizer, only if the policy sets `soft` explicitly.",
    condition=condition,
    is_background=True,
    waits_for_plan=waits_for_plan,
)
