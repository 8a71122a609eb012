"""Prompt sizes per turn, downsampled, as columns for the chart."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any

from compaction.sizes.breakdown import PROMPT_ORDER
from compaction.sizes.calibration import Calibration

#: Maximum number of points. More points than pixels would only slow down the chart.
POINTS_LIMIT = 1_200


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSize:
    """Prompt size of a turn in tokens.

    `estimate` is the estimated size of the full transcript, `served` that of the prompt served by contextapp
    (None for imported sessions), `reported` the size reported by the provider. `client_compaction` is set if
    the client compacted its context before this turn; `output_spike` is the size of the turn's tool outputs
    if they are a spike; `at` is the time of the turn. `uncached`, `cache_read`, `cache_write` and `output`
    are the billed tokens, `microusd` their cost (None without a price), `billed` is false if the
    call is billed to another session. `preamble` is the version of the system prompt and tools, `budget` the
    budget that applied (None for imported sessions).
    """

    turn: int
    estimate: int
    served: int | None = None
    reported: int | None = None
    client_compaction: Mapping[str, Any] | None = None
    output_spike: int | None = None
    at: datetime | None = None
    model: str = ""
    preamble: int = 0
    budget: int | None = None
    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    microusd: int | None = None
    billed: bool = True

    @property
    def is_marked(self) -> bool:
        """Whether the chart marks the turn."""
        return self.client_compaction is not None or self.output_spike is not None

    @property
    def cache_hits(self) -> float | None:
        """The share of the prompt that came from the provider's cache, in percent; None without usage."""
        size = self.uncached + self.cache_read + self.cache_write
        return round(100 * self.cache_read / size, 1) if size else None

    @property
    def tokens(self) -> int:
        """Return the best known size: reported, else served, else the estimate."""
        sizes = (self.reported, self.served, self.estimate)
        return next(size for size in sizes if size is not None)

    def provider_tokens(self, calibration: Calibration) -> int:
        """Return the size as the provider counts it: reported, or else converted once a report is known."""
        if self.reported is not None or not calibration.reports:
            return self.tokens
        return calibration.provider(self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCompaction:
    """A compaction by contextapp. `turn` is the first turn with the compacted prompt; sizes are estimates."""

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


def downsample(points: Sequence[PromptSize], limit: int, keep: Collection[int] = ()) -> Sequence[PromptSize]:
    """Reduce points, which must be in order, to about `limit`.

    Keeps the minimum and maximum of each interval for every kind of size, so that no peak is lost, as well as
    the first and last point, compactions by the client, spikes of tool output, and the turns in `keep`.
    """
    if len(points) <= limit:
        return points
    stretch = -(-8 * (points[-1].turn + 1 - points[0].turn) // limit)
    kept = {points[0].turn: points[0], points[-1].turn: points[-1]}
    kept |= {p.turn: p for p in points if p.is_marked or p.turn in keep}
    # Group by turn, not by point, so that stretches with many points leave no gaps in the others.
    for _, group in groupby(points, lambda point: (point.turn - points[0].turn) // stretch):
        kept |= {point.turn: point for point in _extremes(list(group))}
    return [kept[turn] for turn in sorted(kept)]


def columns(points: Iterable[PromptSize], own: Iterable[OwnCompaction] = ()) -> dict[str, list[Any]]:
    """Return the points as columns for the chart, with the compactions of the client and of contextapp."""
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
        "cost": [p.microusd for p in points],
        "cache_hits": [p.cache_hits for p in points],
        "spikes": [{"turn": p.turn, "tokens": p.output_spike} for p in points if p.output_spike is not None],
        "own_compactions": [asdict(compaction) for compaction in own],
    }


def budget_changes(points: Iterable[PromptSize], current: int) -> list[dict[str, int]]:
    """Return the turns from which another budget applied, beginning with the first turn.

    `current` is the budget of the session: that of turns that store none.
    """
    changes: list[dict[str, int]] = []
    for point in points:
        tokens = current if point.budget is None else point.budget
        if not changes or changes[-1]["tokens"] != tokens:
            changes.append({"turn": point.turn, "tokens": tokens})
    return changes


def component_columns(turns: Sequence[Mapping[str, int]]) -> dict[str, list[int]]:
    """Return the tokens of turns by component, as one column for each component that occurs in any turn."""
    shown = [name for name in PROMPT_ORDER if any(turn.get(name) for turn in turns)]
    return {name: [turn.get(name, 0) for turn in turns] for name in shown}


def idle_gaps(points: Sequence[PromptSize], minimum: timedelta) -> list[dict[str, int]]:
    """Return the pauses of at least `minimum` before a turn, in seconds. Expects consecutive turns."""
    return [
        {"turn": point.turn, "seconds": int((point.at - before.at).total_seconds())}
        for before, point in pairwise(points)
        if before.at is not None and point.at is not None and point.at - before.at >= minimum
    ]


def _extremes(points: Sequence[PromptSize]) -> Iterator[PromptSize]:
    """Yield extremes per kind of size: mixed, turns without a reported size would always be the minimum."""
    for figure in ("estimate", "served", "reported", "microusd"):
        sized = [point for point in points if getattr(point, figure) is not None]
        if sized:
            yield min(sized, key=attrgetter(figure))
            yield max(sized, key=attrgetter(figure))
