"""The prompt size of a session over its turns: its points, thinned for a screen, as columns for the chart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

#: More points than pixels draw nothing but a slower chart.
POINTS_LIMIT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSize:
    """Tokens of one turn's prompt: our estimate, and the provider's figure where it reported one.

    `client_compaction` is set where the recording client compacted its context before this turn.
    """

    turn: int
    estimate: int
    reported: int | None = None
    client_compaction: Mapping[str, Any] | None = None

    @property
    def tokens(self) -> int:
        """The size that counts: what the provider said, else the estimate."""
        return self.estimate if self.reported is None else self.reported


def downsample(points: Sequence[PromptSize], limit: int = POINTS_LIMIT) -> Sequence[PromptSize]:
    """At most about `limit` of the points: of each stretch the smallest and the largest, by both figures, so
    that no peak is lost; the first, the last and every compaction always stay. Needs the points in order."""
    if len(points) <= limit:
        return points
    stretch = -(-4 * len(points) // limit)
    kept = {points[0].turn: points[0], points[-1].turn: points[-1]}
    kept |= {p.turn: p for p in points if p.client_compaction is not None}
    for start in range(0, len(points), stretch):
        for point in _extremes(points[start : start + stretch]):
            kept[point.turn] = point
    return [kept[turn] for turn in sorted(kept)]


def columns(points: Iterable[PromptSize]) -> dict[str, list[Any]]:
    """The points column by column, as the chart draws them, and the compactions among them."""
    points = list(points)
    return {
        "turns": [p.turn for p in points],
        "estimate": [p.estimate for p in points],
        "reported": [p.reported for p in points],
        "compactions": [
            {"turn": p.turn, "after": p.tokens, **p.client_compaction}
            for p in points
            if p.client_compaction is not None
        ],
    }


def _extremes(points: Sequence[PromptSize]) -> Iterator[PromptSize]:
    """The two figures apart: mixed, a turn without a report would always look like the smallest."""
    yield min(points, key=lambda point: point.estimate)
    yield max(points, key=lambda point: point.estimate)
    reported = [(point.reported, point) for point in points if point.reported is not None]
    if reported:
        yield min(reported, key=itemgetter(0))[1]
        yield max(reported, key=itemgetter(0))[1]
