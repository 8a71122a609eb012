"""What a trigger declares about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compaction.policy import Policy
from compaction.triggers.state import TriggerState

Condition = Callable[[TriggerState, Policy], bool]

#: Turns that a planned action is given: one for the call, one for its result.
PLAN_TURNS = 2


def never(state: TriggerState, policy: Policy) -> bool:
    """The condition that no state meets."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One reason to compact.

    `name` is recorded with each compaction. `meaning` is its tooltip, one sentence. `description` is the
    trigger's row in the documentation. `condition` decides from a session's state whether to compact; a
    trigger without one is only ever requested by name. Background triggers leave the work to a worker.

    `is_urgent`: nothing may hold the trigger back. `waits_for_plan`: the agent has just planned an action,
    and the trigger can wait until it is done.
    """

    name: str
    meaning: str
    description: str
    condition: Condition = never
    is_background: bool = False
    is_urgent: Condition = never
    waits_for_plan: Condition = never
