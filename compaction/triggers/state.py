"""The state of a session for the evaluation of triggers. Each push updates it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerState:
    """A session's state for triggers. Token figures are those of the prompt, in the unit of the budget.

    `compacted_tokens` is the size of the prompt after the last compaction or attempt, or None before the
    first. `turns_since_compaction` counts from the same moment. `open_calls` are tool calls without a result.
    `planned_turns` is how many turns ago `next` was written in the working memory, or None if it is empty.
    `has_provider_engine` is set if the provider compacts the prompt.
    """

    tokens: int
    budget: int
    compacted_tokens: int | None = None
    turns_since_compaction: int = 0
    idle_seconds: int = 0
    open_calls: int = 0
    planned_turns: int | None = None
    has_provider_engine: bool = False

    @property
    def occupancy(self) -> float:
        """The share of the budget that the prompt takes."""
        return self.tokens / self.budget
