"""What a replay is run under: a policy, and a budget that is a number of tokens or a share of the session."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.policy import Policy
from compaction.replay.scale import scale_of
from compaction.replay.transcript import Transcript

#: No share of a short session goes below this (estimated tokens): it would be no session any more.
LEAST_BUDGET = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A budget: `ratio` of the session's largest prompt, or `tokens` as the provider counts them.

    A ratio is of what the log shows, so that 1.00 fits everything. What the client adds to every prompt
    without logging it (system text, tools) takes its part of `tokens`, as it does in production.
    """

    ratio: float | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        if (self.ratio is None) == (self.tokens is None):
            raise ValueError("either a ratio or a number of tokens")
        if not (self.ratio or self.tokens or 0) > 0:
            raise ValueError("a budget is above 0")

    @property
    def label(self) -> str:
        """For people: `0.50`, `100,000`."""
        return f"{self.ratio:.2f}" if self.ratio is not None else f"{self.tokens:,}"

    def budget(self, transcript: Transcript) -> int:
        """In estimated tokens of what the log shows; at least 1."""
        if self.ratio is not None:
            return max(LEAST_BUDGET, round(self.ratio * transcript.peak))
        return max(1, scale_of(transcript).estimated(self.tokens or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of a comparison."""

    policy: Policy
    limit: Limit
