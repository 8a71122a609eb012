"""Turns: compact every N turns, whatever the size of the prompt."""

from __future__ import annotations

from compaction.policy import Policy
from compaction.triggers.base import PLAN_TURNS, Trigger
from compaction.triggers.state import TriggerState


def condition(state: TriggerState, policy: Policy) -> bool:
    return policy.every_turns > 0 and state.turns_since_compaction >= policy.every_turns


def waits_for_plan(state: TriggerState, policy: Policy) -> bool:
    """An agent may plan something new every turn, so the wait ends after `PLAN_TURNS`."""
    return state.turns_since_compaction < policy.every_turns + PLAN_TURNS


TRIGGER = Trigger(
    name="turns",
    meaning="The policy compacts every so many turns; compacted in the background.",
    description="N turns since the last compaction (`every_turns`, off by default). In the background.",
    condition=condition,
    is_background=True,
    waits_for_plan=waits_for_plan,
)
