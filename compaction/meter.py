"""The meter: spikes of tool output, and the slope of prompt sizes.

Every figure is updated from the newest turn alone; nothing here reads the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputMean:
    """The running mean of tool output tokens per turn, to which a spike is compared."""

    turns: int = 0
    tokens: int = 0

    def updated(self, tokens: int) -> OutputMean:
        return OutputMean(turns=self.turns + 1, tokens=self.tokens + tokens)

    def is_spike(self, tokens: int, budget: int) -> bool:
        """Whether these outputs are a spike: a large share of the budget and far above the mean."""
        if tokens < _SPIKE_SHARE * budget:
            return False
        return self.turns < _SPIKE_TURNS or tokens > _SPIKE_FACTOR * self.tokens / self.turns


_SPIKE_SHARE = 0.15
_SPIKE_FACTOR = 4
_SPIKE_TURNS = 3


class Verdict(StrEnum):
    """The trend of prompt sizes."""

    FLAT = "flat"
    GROWING = "growing"
    WALL = "hitting the wall"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """`tokens_per_turn` is the least-squares slope; `turns_left` until the budget is full, None if never."""

    verdict: Verdict
    tokens_per_turn: float
    turns_left: int | None


#: The slope covers the newest prompts, without the first turns, which set up the session.
SLOPE_TURNS = 20
_SETTLING_TURNS = 5

_FLAT_SHARE = 0.002
_WALL_SHARE = 0.9
_WALL_TURNS = 10


def slope(sizes: Sequence[int], budget: int) -> Slope:
    """Return the slope of the newest `SLOPE_TURNS` prompt sizes, oldest first."""
    recent = list(sizes[_SETTLING_TURNS:] if len(sizes) > 2 * _SETTLING_TURNS else sizes)[-SLOPE_TURNS:]
    rise = _least_squares(recent)
    left = None
    if rise > _FLAT_SHARE * budget:
        left = max(0, int((budget - recent[-1]) / rise))
    near = bool(recent) and recent[-1] >= _WALL_SHARE * budget
    if left is not None and (left <= _WALL_TURNS or near):
        verdict = Verdict.WALL
    else:
        verdict = Verdict.FLAT if left is None else Verdict.GROWING
    return Slope(verdict=verdict, tokens_per_turn=round(rise, 1), turns_left=left)


def _least_squares(values: Sequence[int]) -> float:
    count = len(values)
    if count < 2:
        return 0.0
    middle, mean = (count - 1) / 2, sum(values) / count
    spread = sum((x - middle) ** 2 for x in range(count))
    return sum((x - middle) * (y - mean) for x, y in enumerate(values)) / spread
