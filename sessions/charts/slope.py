"""Growth of a stored session's prompt."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from compaction.sizes import meter
from compaction.sizes.calibration import Calibration
from compaction.sizes.meter import Slope, Verdict
from sessions.charts.prompt_sizes import PromptSize

#: Number of newest turns from which growth is calculated.
SLOPE_TURNS = 200
#: Context window in tokens to assume for unknown models.
ASSUMED_WINDOW = 200_000


def slope_of(
    points: Sequence[PromptSize],
    limit: int | None,
    *,
    calibration: Calibration | None = None,
    compactions: Collection[int] = (),
    trigger: int | None = None,
) -> Slope | None:
    """Return the trend of the newest prompts, or None for fewer than three.

    `limit` is the budget or context window in tokens, if known. `calibration` converts the sizes of served
    prompts to the provider's tokens. `compactions` are the first turns after compactions by contextapp.
    `trigger` is the size at which the next compaction runs, if it does before the limit.
    """
    newest = points[-SLOPE_TURNS:]
    sizes = _sizes(newest, calibration or Calibration())
    if len(sizes) < 3:
        return None
    turns = {*compactions, *(point.turn for point in newest if point.client_compaction is not None)}
    found = meter.slope(
        [size for _, size in sizes],
        limit or ASSUMED_WINDOW,
        compactions={index for index, (turn, _) in enumerate(sizes) if turn in turns},
        trigger=trigger,
    )
    if limit is None:
        verdict = Verdict.GROWING if found.verdict is Verdict.WALL else found.verdict
        return replace(found, verdict=verdict, turns_left=None)
    return found


def _sizes(points: Sequence[PromptSize], calibration: Calibration) -> Sequence[tuple[int, int]]:
    """Return turns with sizes of one kind: mixing estimated and reported sizes would look like growth.

    Uses the served prompt, which compaction bounds, unless the session is imported and has none.
    """
    served = [(p.turn, calibration.provider(p.served)) for p in points if p.served is not None]
    reported = [(p.turn, p.reported) for p in points if p.reported is not None]
    return served or reported or [(p.turn, p.estimate) for p in points]
