"""How fast a prompt grows, and whether it will hit the model's window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sessions.charts.prompt_sizes import PromptSize

#: A prompt that fell below this share of the one before was compacted: growth is measured from there on.
FALL = 0.7
#: Below this growth over the measured turns, as a share of the prompt, it is flat.
FLAT = 0.05
#: The wall is near: this few turns away at the present pace, or this much of the window taken.
WALL_TURNS = 20
WALL_OCCUPANCY = 0.9


class Verdict(StrEnum):
    FLAT = "flat"
    GROWING = "growing"
    WALL = "hitting the wall"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """`tokens_per_turn` is the least-squares slope over the last `turns` turns since the prompt last fell.

    `turns_left` is how many more of that pace fit the window; None where it is not growing or the window
    is not known.
    """

    verdict: Verdict
    tokens_per_turn: float
    turns: int
    turns_left: int | None


def slope_of(points: Sequence[PromptSize], window: int | None) -> Slope | None:
    """The verdict over the newest points, or None for fewer than three of them since the last fall."""
    stretch = _since_last_fall(points)
    if len(stretch) < 3:
        return None
    per_turn = _least_squares([(p.turn, p.tokens) for p in stretch])
    last = stretch[-1].tokens
    growth = per_turn * (stretch[-1].turn - stretch[0].turn)
    is_flat = growth < FLAT * max(last, 1)
    turns_left = None if window is None or is_flat else max(int((window - last) / per_turn), 0)
    return Slope(
        verdict=_verdict(is_flat, turns_left, last / window if window else 0.0),
        tokens_per_turn=per_turn,
        turns=len(stretch),
        turns_left=turns_left,
    )


def _verdict(is_flat: bool, turns_left: int | None, occupancy: float) -> Verdict:
    if occupancy >= WALL_OCCUPANCY or (turns_left is not None and turns_left <= WALL_TURNS):
        return Verdict.WALL
    return Verdict.FLAT if is_flat else Verdict.GROWING


def _since_last_fall(points: Sequence[PromptSize]) -> Sequence[PromptSize]:
    """One kind of figure only: estimates and reports differ by a factor, which would look like growth."""
    reported = [p for p in points if p.reported is not None]
    points = reported or points
    start = max(
        (i for i in range(1, len(points)) if points[i].tokens < FALL * points[i - 1].tokens), default=0
    )
    return points[start:]


def _least_squares(points: Sequence[tuple[int, int]]) -> float:
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
