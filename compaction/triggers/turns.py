"""Turns: compact every N turns, regardless of the size of the prompt."""

from __future__ import annotations

from compaction.policy import Policy
from compaction.triggers.base import PLAN_TURNS, Trigger, TriggerState


def condition(state: TriggerState, policy: Policy) -> bool:
    return policy.every_turns > 0 and state.turns_since_compaction >= policy.every_turns


def waits_for_plan(state: TriggerState, policy: Policy) -> bool:
    """Wait up to `PLAN_TURNS`, because an agent may plan a new action in every turn."""
    return state.turns_since_compaction < policy.every_turns + PLAN_TURNS


TRIGGER = Trigger(
    name="turns",
    meaning="The policy's turn interval was reached; compacted in the background.",
    description="N turns since the last compaction (`every_turns`, off by default). In the background.",
    condition=condition,
    is_background=True,
    waits_for_plan=waits_for_plan,
)
