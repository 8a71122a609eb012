"""Growth of a stored session's prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compaction import meter
from sessions.charts.prompt_sizes import PromptSize

#: A prompt smaller than this share of the previous one was compacted: measure growth from there.
FALL = 0.7
#: Context window in tokens to assume for unknown models.
ASSUMED_WINDOW = 200_000


def slope_of(points: Sequence[PromptSize], limit: int | None, *, is_held: bool = False) -> meter.Slope | None:
    """Return the growth over the newest points, or None for fewer than three since the last compaction.

    `limit` is the budget or context window in tokens, if known. `is_held`: compactions keep the prompt below
    the limit, so that reaching it is not reported as a wall.
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
    """Return sizes of one kind: mixing estimated and reported sizes would look like growth."""
    reported = [p.reported for p in points if p.reported is not None]
    served = [p.served for p in points if p.served is not None]
    sizes = reported or served or [p.estimate for p in points]
    falls = (i for i in range(1, len(sizes)) if sizes[i] < FALL * sizes[i - 1])
    return sizes[max(falls, default=0) :]
