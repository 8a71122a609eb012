"""The inputs of a plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from compaction.capabilities import Capabilities
from compaction.context import Context
from compaction.edits import MakeHandle, default_handle
from compaction.layout import Layout, split
from compaction.policy import Budget, Policy
from compaction.recap import Recap
from compaction.recap.spans import Summary
from compaction.sizes.calibration import Calibration
from compaction.sizes.tokens import TokenCounter
from compaction.view import View
from compaction.view.components import SHEDDABLE


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """The inputs of a plan.

    Without a `trigger`, a plan compacts only if the prompt has reached `policy.hard`; a named trigger
    compacts at any size. `calibration` maps estimates to the provider's tokens. `previous` is the recap that
    the view shows, `summary` a model's recap that is ready. `memory_text` is the working memory of the
    compacted prompt, `memory_revision` its revision, if it has one. `sheddable` are the components that may
    be removed from the prompt, in this order.
    """

    view: View
    policy: Policy
    counter: TokenCounter
    budget: Budget
    trigger: str | None = None
    calibration: Calibration = field(default_factory=Calibration)
    capabilities: Capabilities = field(default_factory=Capabilities)
    make_handle: MakeHandle = default_handle
    previous: Recap | None = None
    summary: Summary | None = None
    memory_text: str = ""
    memory_revision: int | None = None
    sheddable: tuple[str, ...] = SHEDDABLE

    @cached_property
    def budget_tokens(self) -> int:
        """The budget in estimated tokens, the unit of messages and views."""
        return self.calibration.room(self.budget.input_tokens)

    @cached_property
    def ceiling(self) -> int:
        """The size from which the prompt is compacted immediately: a share of the whole budget."""
        return self.calibration.room(int(self.budget.input_tokens * (self.policy.hard or 1.0)))

    @cached_property
    def goal(self) -> int:
        """The target size: a share of the budget without the overhead.

        A named trigger must have an effect, even if the target is already met.
        """
        goal = int(self.budget_tokens * self.policy.target)
        if self.trigger is not None and self.view.tokens <= goal:
            return int(self.view.tokens * self.policy.target)
        return goal

    @property
    def is_due(self) -> bool:
        """Whether the plan should compact at all."""
        reached_hard = self.policy.hard > 0 and self.view.tokens >= self.ceiling
        return self.trigger is not None or reached_hard

    @cached_property
    def layout(self) -> Layout:
        return split(self.view, self.policy, budget_tokens=self.budget_tokens)

    def context(self) -> Context:
        """Return a new context for the strategies."""
        return Context(
            start=self.view,
            layout=self.layout,
            settings=self.policy,
            counter=self.counter,
            budget_tokens=self.budget_tokens,
            goal=self.goal,
            ceiling=self.ceiling,
            capabilities=self.capabilities,
            make_handle=self.make_handle,
            previous=self.previous,
            summary=self.summary,
            memory_text=self.memory_text,
            sheddable=self.sheddable,
        )
