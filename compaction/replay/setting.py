"""The setting of a replay: a policy, and a budget as tokens or as a share of the session."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.policy import Policy
from compaction.replay.scale import scale_of
from compaction.replay.transcript import Transcript

#: The minimum budget for a share of a short session (estimated tokens).
LEAST_BUDGET = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A budget: a `ratio` of the session's largest prompt, or `tokens` in provider tokens.

    A ratio refers to the logged content, so 1.00 fits everything. Unlogged parts of the prompt (system
    prompt, tools) count toward `tokens`, as in production.
    """

    ratio: float | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        if (self.ratio is None) == (self.tokens is None):
            raise ValueError("set either a ratio or a number of tokens")
        if not (self.ratio or self.tokens or 0) > 0:
            raise ValueError("a budget must be above 0")

    @property
    def label(self) -> str:
        """The budget for display: `0.50`, `100,000`."""
        return f"{self.ratio:.2f}" if self.ratio is not None else f"{self.tokens:,}"

    def budget(self, transcript: Transcript) -> int:
        """Return the budget in estimated tokens of the logged content, at least 1."""
        if self.ratio is not None:
            return max(LEAST_BUDGET, round(self.ratio * transcript.peak))
        return max(1, scale_of(transcript).estimated(self.tokens or 0))

    def provider_tokens(self, transcript: Transcript) -> int:
        """Return the budget in provider tokens, including what the log does not contain.

        A ratio is scaled like the largest prompt, so that the budget 1.00 is exactly as large.
        """
        if self.tokens is not None or not transcript.calls:
            return self.tokens or 0
        call = max(transcript.calls, key=transcript.size)
        return scale_of(transcript).real(
            self.budget(transcript), sent=transcript.sent(call), reported=call.reported
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of a comparison."""

    policy: Policy
    limit: Limit
