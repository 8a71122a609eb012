"""How fast the prompt of a stored session grows, by the core's meter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compaction import meter
from sessions.charts.prompt_sizes import PromptSize

#: A prompt that fell below this share of the one before was compacted: growth is measured from there on.
FALL = 0.7
#: Growth is judged against this window, in tokens, where the model's is not known.
ASSUMED_WINDOW = 200_000


def slope_of(points: Sequence[PromptSize], limit: int | None, *, is_held: bool = False) -> meter.Slope | None:
    """The verdict over the newest points, or None for fewer than three of them since the last fall.

    `limit` is the budget or the window, in tokens; where neither is known, nothing is said about a wall.
    `is_held`: compactions of ours keep the prompt under the limit, so that it is no wall either.
    """
    sizes = _since_last_fall(points)
    if len(sizes) < 3:
        return None
    found = meter.slope(sizes, limit or ASSUMED_WINDOW)
    if limit is None and found.verdict is not meter.Verdict.FLAT:
        return replace(found, verdict=meter.Verdict.GROWING, turns_left=None)
    if is_held and found.verdict is meter.Verdict.WALL:
        return replace(found, verdict=meter.Verdict.GROWING)
    return found


def _since_last_fall(points: Sequence[PromptSize]) -> Sequence[int]:
    """One kind of figure only: estimates and reports differ by a factor, which would look like growth."""
    reported = [p.reported for p in points if p.reported is not None]
    served = [p.served for p in points if p.served is not None]
    sizes = reported or served or [p.estimate for p in points]
    falls = (i for i in range(1, len(sizes)) if sizes[i] < FALL * sizes[i - 1])
    return sizes[max(falls, default=0) :]
