"""The declaration of a trigger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compaction.policy import Policy
from compaction.triggers.state import TriggerState

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
