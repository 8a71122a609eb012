"""The declaration of a trigger, and the state of a session with which it is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compaction.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerState:
    """A session's state for triggers, which each push updates.

    Token figures are those of the prompt, in the unit of the budget.
    `compacted_tokens` is the size of the prompt after the last compaction or attempt, or None before the
    first. `turns_since_compaction` counts from the same moment. `open_calls` are tool calls without a result.
    `planned_turns` is how many turns ago `next` was written in the working memory, or None if it is empty.
    `is_soft_used` is false if the soft trigger is not used, because no model summarizes.
    `has_provider_engine` is set if the provider compacts the prompt.
    """

    tokens: int
    budget: int
    compacted_tokens: int | None = None
    turns_since_compaction: int = 0
    idle_seconds: int = 0
    open_calls: int = 0
    planned_turns: int | None = None
    is_soft_used: bool = True
    has_provider_engine: bool = False

    @property
    def occupancy(self) -> float:
        """The share of the budget that the prompt takes."""
        return self.tokens / self.budget


Condition = Callable[[TriggerState, Policy], bool]

#: Number of turns that a planned action has to complete: one for the call, one for its result.
PLAN_TURNS = 2


def never(state: TriggerState, policy: Policy) -> bool:
    """Return False: the condition of triggers that are requested by name only."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A reason to compact.

    `name` is recorded with each compaction. `meaning` is its tooltip, one sentence. `description` is the
    trigger's row in the documentation. `condition` decides from a session's state whether to compact; a
    trigger without one is requested by name only. Compactions of background triggers run in a worker.

    `is_urgent` returns whether to ignore all rules that limit triggers. `waits_for_plan` returns whether the
    trigger can wait until the agent has completed an action that it has just planned.
    """

    name: str
    meaning: str
    description: str
    condition: Condition = never
    is_background: bool = False
    is_urgent: Condition = never
    waits_for_plan: Condition = never
