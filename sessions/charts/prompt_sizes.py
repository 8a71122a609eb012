"""The prompt size of a session over its turns: its points, thinned for a screen, as columns for the chart."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from operator import attrgetter
from typing import Any

#: More points than pixels draw nothing but a slower chart.
POINTS_LIMIT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSize:
    """Tokens of one turn's prompt: our estimate of the whole transcript, of what was served of it where that
    was pushed here, and the provider's figure where it reported one.

    `client_compaction` is set where the recording client compacted its context before this turn; `at` is
    when the turn came.
    """

    turn: int
    estimate: int
    served: int | None = None
    reported: int | None = None
    client_compaction: Mapping[str, Any] | None = None
    at: datetime | None = None

    @property
    def tokens(self) -> int:
        """The size that counts: what the provider said, else the estimate of what was sent."""
        sizes = (self.reported, self.served, self.estimate)
        return next(size for size in sizes if size is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCompaction:
    """A compaction of ours. `turn` is the first whose model call read the compacted prompt; tokens are our
    estimate of the prompt on both sides of it."""

    turn: int
    trigger: str
    tokens_before: int | None
    tokens_after: int | None
    is_reverted: bool = False
    number: int = 0
    steps: Sequence[str] = ()
    dropped: int = 0
    collapsed: int = 0
    break_even_turns: float | None = None


def downsample(
    points: Sequence[PromptSize], limit: int = POINTS_LIMIT, keep: Collection[int] = ()
) -> Sequence[PromptSize]:
    """At most about `limit` of the points: of each stretch the smallest and the largest, by every figure, so
    that no peak is lost; the first, the last, every compaction by the client and the turns in `keep` always
    stay. Needs the points in order."""
    if len(points) <= limit:
        return points
    stretch = -(-6 * len(points) // limit)
    kept = {points[0].turn: points[0], points[-1].turn: points[-1]}
    kept |= {p.turn: p for p in points if p.client_compaction is not None or p.turn in keep}
    for start in range(0, len(points), stretch):
        for point in _extremes(points[start : start + stretch]):
            kept[point.turn] = point
    return [kept[turn] for turn in sorted(kept)]


def columns(points: Iterable[PromptSize], own: Iterable[OwnCompaction] = ()) -> dict[str, list[Any]]:
    """The points column by column, as the chart draws them, and the compactions, the client's and ours."""
    points = list(points)
    return {
        "turns": [p.turn for p in points],
        "estimate": [p.estimate for p in points],
        "served": [p.served for p in points],
        "reported": [p.reported for p in points],
        "compactions": [
            {"turn": p.turn, "after": p.tokens, **p.client_compaction}
            for p in points
            if p.client_compaction is not None
        ],
        "own_compactions": [asdict(compaction) for compaction in own],
    }


def idle_gaps(points: Sequence[PromptSize], least: timedelta) -> list[dict[str, int]]:
    """The pauses of at least `least` before a turn, in seconds. Needs every point of the stretch."""
    return [
        {"turn": point.turn, "seconds": int((point.at - before.at).total_seconds())}
        for before, point in pairwise(points)
        if before.at is not None and point.at is not None and point.at - before.at >= least
    ]


def _extremes(points: Sequence[PromptSize]) -> Iterator[PromptSize]:
    """The figures apart: mixed, a turn without a report would always look like the smallest."""
    for figure in ("estimate", "served", "reported"):
        sized = [point for point in points if getattr(point, figure) is not None]
        if sized:
            yield min(sized, key=attrgetter(figure))
            yield max(sized, key=attrgetter(figure))
