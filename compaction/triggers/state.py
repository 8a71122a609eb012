"""What triggers look at: one small value, kept up to date by each push."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerState:
    """A session as triggers see it. Token figures are of the prompt alone, and in the budget's unit.

    `fired_tokens` is the prompt's size behind the last compaction or attempt, None where there was none:
    the re-fire cursor. `open_calls` are calls that nobody has answered yet. `planned_turns` is how many
    turns ago the working memory's `next` was written, None where it names no action. `failures` counts
    background failures in a row.
    """

    tokens: int
    budget: int
    fired_tokens: int | None = None
    turns_since_fired: int = 0
    idle_seconds: int = 0
    open_calls: int = 0
    planned_turns: int | None = None
    failures: int = 0
    asked: bool = False

    @property
    def occupancy(self) -> float:
        return self.tokens / self.budget
