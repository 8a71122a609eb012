"""The turns of a session that its chart draws. Those of long sessions are selected by their stretches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, cycle

from sessions.charts.cache import CACHE_LIFE, Miss, misses
from sessions.charts.prompt_sizes import POINTS_LIMIT, PromptSize, downsample, idle_gaps
from sessions.models import AgentSession
from sessions.selectors.charts.series import chart_points
from sessions.selectors.charts.stretches import LONG, Stretch, stretches, turn_of

#: Maximum number of marks of each kind on a chart; the largest ones are shown.
MARKS = 300
#: Turns before the last stretch among which is the previous call.
_LOOK_BACK = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartSample:
    """The points to draw, of `turn_count` turns, with their pauses and their largest cache misses."""

    points: Sequence[PromptSize]
    idle: Sequence[Mapping[str, int]]
    misses: Sequence[Miss]
    turn_count: int


def chart_sample(
    *,
    session: AgentSession,
    first: int | None = None,
    end: int | None = None,
    compactions: Mapping[int, int],
    keep: Collection[int],
    limit: int = POINTS_LIMIT,
) -> ChartSample:
    """Return about `limit` points of turns `first` to `end`: all peaks, marked turns, and those in `keep`.

    `compactions` are the numbers of contextapp's compactions by turn (see `misses`).
    """
    begin, last = max(first or 0, 0), session.turn_count - 1
    last = last if end is None else min(end, last)
    if last - begin >= LONG:
        return _sample_of_stretches(session, begin, last, compactions, keep, limit)
    points = chart_points(session=session, first=first, end=end)
    idle = idle_gaps(points, CACHE_LIFE)
    largest = sorted(misses(points, compactions), key=lambda miss: -miss.tokens)[:MARKS]
    keep = {*keep, *(gap["turn"] for gap in idle), *(miss.turn for miss in largest)}
    return ChartSample(
        points=downsample(points, limit, keep=keep), idle=idle, misses=largest, turn_count=len(points)
    )


def _sample_of_stretches(
    session: AgentSession,
    begin: int,
    last: int,
    compactions: Mapping[int, int],
    keep: Collection[int],
    limit: int,
) -> ChartSample:
    """Return the same for many turns, from the extremes, misses and pauses of their stretches.

    All turns before the first stretch and after the last one are drawn.
    """
    found = stretches(session_id=session.pk, first=begin, end=last + 1)
    covered = range(found[0].first, found[-1].end) if found else range(begin, begin)
    edges = [range(begin, covered.start), range(max(covered.stop - _LOOK_BACK, begin), last + 1)]
    least = _threshold(stretch.misses for stretch in found)
    missed = [
        (before, turn_of(miss))
        for stretch in found
        for miss, before in zip(stretch.misses, stretch.missed_after, strict=True)
        if miss >= least
    ]
    least = _threshold(stretch.pauses for stretch in found)
    paused = [
        (turn_of(pause) - 1, turn_of(pause)) for each in found for pause in each.pauses if pause >= least
    ]
    marked = [turn for stretch in found for turn in stretch.marked]
    drawn = {begin, last, *(turn for turn in keep if begin <= turn <= last), *marked[-2 * MARKS :]}
    drawn.update(chain(_extremes(found, limit), *edges, *missed, *paused))
    points = chart_points(session=session, turns=sorted(turn for turn in drawn if turn >= begin))
    by_turn = {point.turn: point for point in points}
    at_edges = [[by_turn[turn] for turn in edge] for edge in edges]
    at_misses = [[by_turn[one], by_turn[other]] for one, other in missed if one in by_turn]
    at_pauses = [[by_turn[one], by_turn[other]] for one, other in paused if one in by_turn]
    found_misses = {miss.turn: miss for run in at_misses + at_edges for miss in misses(run, compactions)}
    gaps = {gap["turn"]: gap for run in at_pauses + at_edges for gap in idle_gaps(run, CACHE_LIFE)}
    return ChartSample(
        points=points,
        idle=[gaps[turn] for turn in sorted(gaps)],
        misses=sorted(found_misses.values(), key=lambda miss: -miss.tokens)[:MARKS],
        turn_count=last - begin + 1,
    )


def _threshold(values: Iterable[Sequence[int]]) -> int:
    """Return the smallest of the `MARKS` largest packed values."""
    return min(sorted(chain.from_iterable(values))[-MARKS:], default=0)


def _extremes(found: Sequence[Stretch], limit: int) -> Iterator[int]:
    """Yield the turns of the extremes, of as many consecutive stretches together as the chart needs."""
    together = max(-(-8 * len(found) // limit), 1)
    for start in range(0, len(found), together):
        columns = zip(*(stretch.extremes for stretch in found[start : start + together]), strict=True)
        for column, pick in zip(columns, cycle((min, max)), strict=False):
            values = [value for value in column if value is not None]
            if values:
                yield turn_of(pick(values))
