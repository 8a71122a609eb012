"""The turns of a session that its chart draws. Postgres selects those of long sessions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from sessions.charts.cache import CACHE_LIFE, Miss, misses
from sessions.charts.prompt_sizes import POINTS_LIMIT, PromptSize, downsample, idle_gaps
from sessions.models import AgentSession
from sessions.selectors.charts import chart_points
from sessions.store.postgres import rows_fetch

#: Maximum number of turns to load completely. Above it, selecting turns in Postgres is faster.
LONG = 10_000
#: Maximum number of marks of each kind on a chart; the largest ones are shown.
MARKS = 300


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
    keep: Collection[int] = (),
) -> ChartSample:
    """Return the points of turns `first` to `end`: all peaks, marked turns, and those in `keep`.

    `compactions` are the numbers of contextapp's compactions by turn (see `misses`).
    """
    begin, last = max(first or 0, 0), session.turn_count - 1
    last = last if end is None else min(end, last)
    if last - begin >= LONG:
        return _selected(session, begin, last, compactions, keep)
    points = chart_points(session=session, first=first, end=end)
    idle = idle_gaps(points, CACHE_LIFE)
    largest = sorted(misses(points, compactions), key=lambda miss: -miss.tokens)[:MARKS]
    keep = {*keep, *(gap["turn"] for gap in idle), *(miss.turn for miss in largest)}
    return ChartSample(
        points=downsample(points, keep=keep), idle=idle, misses=largest, turn_count=len(points)
    )


def _selected(
    session: AgentSession, begin: int, last: int, compactions: Mapping[int, int], keep: Collection[int]
) -> ChartSample:
    count = last - begin + 1
    span: dict[str, Any] = {"session": session.pk, "first": begin, "last": last, "marks": MARKS}
    span["stretch"] = -(-8 * count // POINTS_LIMIT)
    drawn = {begin, last, *(turn for turn in keep if begin <= turn <= last)}
    for row in rows_fetch(_EXTREMES, span):
        drawn.update(value & 0xFFFFFFFF for value in row if value is not None)
    drawn.update(turn for (turn,) in rows_fetch(_MARKED, span))
    missed, paused = list(rows_fetch(_MISSES, span)), list(rows_fetch(_PAUSES, span))
    around = {turn for pair in (*missed, *paused) for turn in pair}
    points = chart_points(session=session, turns=sorted(drawn | around))
    by_turn = {point.turn: point for point in points}
    return ChartSample(
        points=points,
        idle=[gap for one, other in paused for gap in idle_gaps([by_turn[one], by_turn[other]], CACHE_LIFE)],
        misses=[
            miss for one, other in missed for miss in misses([by_turn[one], by_turn[other]], compactions)
        ],
        turn_count=count,
    )


# The turn is in the low bits, so that one pass finds the extremes together with their turns.
_EXTREMES: LiteralString = """
SELECT min(prompt_estimate::bigint << 32 | index), max(prompt_estimate::bigint << 32 | index),
       min(prompt_served::bigint << 32 | index), max(prompt_served::bigint << 32 | index),
       min(prompt_reported::bigint << 32 | index), max(prompt_reported::bigint << 32 | index),
       min(least(cost_microusd, 2147483647) << 32 | index),
       max(least(cost_microusd, 2147483647) << 32 | index)
  FROM agent_sessions_turn
 WHERE session_id = %(session)s AND index BETWEEN %(first)s AND %(last)s
 GROUP BY (index - %(first)s) / %(stretch)s
"""

_MARKED: LiteralString = """
SELECT index FROM agent_sessions_turn
 WHERE session_id = %(session)s AND index BETWEEN %(first)s AND %(last)s
   AND (client_compaction IS NOT NULL OR output_spike IS NOT NULL)
 ORDER BY client_compaction IS NOT NULL DESC, output_spike DESC
 LIMIT 2 * %(marks)s
"""

# Candidates: calls that read less than half of what the previous call left in the cache. `misses` decides.
_MISSES: LiteralString = """
SELECT before, index
  FROM (SELECT index, lag(index) OVER w AS before, cache_read_tokens AS hit,
               least(prompt_reported, CASE WHEN lag(cache_write_tokens) OVER w > 0
                                           THEN lag(cache_read_tokens) OVER w + lag(cache_write_tokens) OVER w
                                           ELSE lag(prompt_reported) OVER w END) AS expected
          FROM agent_sessions_turn
         WHERE session_id = %(session)s AND index BETWEEN %(first)s AND %(last)s
           AND prompt_reported IS NOT NULL AND billed
        WINDOW w AS (ORDER BY index)) AS call
 WHERE hit < 0.5 * expected
 ORDER BY expected - hit DESC
 LIMIT %(marks)s
"""

_PAUSES: LiteralString = """
SELECT before, index
  FROM (SELECT index, lag(index) OVER w AS before, at - lag(at) OVER w AS pause
          FROM agent_sessions_turn
         WHERE session_id = %(session)s AND index BETWEEN %(first)s AND %(last)s
        WINDOW w AS (ORDER BY index)) AS turn
 WHERE pause >= interval '5 minutes'
 ORDER BY pause DESC
 LIMIT %(marks)s
"""
