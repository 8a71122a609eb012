"""Stretches of a long session's turns, which its pages read instead of the turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString, NamedTuple
from uuid import UUID

from sessions.models import AgentSession, TurnStretch
from sessions.store.postgres import rows_fetch

#: Number of turns from which a session has stretches.
LONG = 10_000
#: The number of growths and costs of a stretch.
MOST = 5


class Stretch(NamedTuple):
    """A stretch; see `TurnStretch` for its columns. Values are packed with the index of their turn."""

    number: int
    extremes: Sequence[int | None]
    growths: Sequence[int]
    costs: Sequence[int]
    pauses: Sequence[int]
    misses: Sequence[int]
    missed_after: Sequence[int]
    marked: Sequence[int]
    estimated_outputs: int
    first_position: int
    end_position: int
    message_count: int
    message_tokens: int
    system_tokens: int

    @property
    def first(self) -> int:
        return self.number * TurnStretch.TURNS

    @property
    def end(self) -> int:
        """The index after the last turn."""
        return self.first + TurnStretch.TURNS


class Largest(NamedTuple):
    """The turns up to `end` with the largest growths and costs, and how many outputs are estimated."""

    end: int = 0
    growths: Sequence[int] = ()
    costs: Sequence[int] = ()
    estimated_outputs: int = 0


#: For sessions without stretches.
NOTHING = Largest()


def turn_of(packed: int) -> int:
    """Return the index of the turn of a packed value."""
    return packed & 0xFFFFFFFF


def stretches(*, session_id: UUID, first: int, end: int) -> list[Stretch]:
    """Return the stretches that lie in the turns from `first` up to `end`, in order.

    Reads those that a worker has stored, and computes the others. Two queries.
    """
    number, last = -(-first // TurnStretch.TURNS), end // TurnStretch.TURNS - 1
    parameters = {"session": session_id, "first": number, "last": last}
    found = [Stretch(*row) for row in rows_fetch(_STORED, parameters)]
    computed = found[-1].number + 1 if found else number
    if computed <= last:
        found += stretches_compute(session_id=session_id, number=computed, last=last)
    return found


def largest_of(*, session: AgentSession) -> Largest:
    """Return the largest values of a session's stored stretches; none if it is short. At most one query."""
    if session.turn_count <= LONG:
        return NOTHING
    [(end, growths, costs, estimated)] = rows_fetch(
        _LARGEST, {"session": session.pk, "size": TurnStretch.TURNS, "most": MOST}
    )
    return Largest(
        end=end,
        growths=[turn_of(growth) for growth in growths],
        costs=[turn_of(cost) for cost in costs],
        estimated_outputs=estimated,
    )


def stretches_compute(*, session_id: UUID, number: int, last: int) -> list[Stretch]:
    """Return the stretches `number` to `last`, computed from their turns. One query."""
    size = TurnStretch.TURNS
    parameters = {
        "session": session_id,
        "first": number * size,
        "end": (last + 1) * size,
        "size": size,
        "most": MOST,
    }
    return [Stretch(*row) for row in rows_fetch(_STRETCHES, parameters)]


_STORED: LiteralString = """
SELECT number, extremes, growths, costs, pauses, misses, missed_after, marked, estimated_outputs,
       first_position, end_position, message_count, message_tokens, system_tokens
  FROM agent_sessions_turnstretch
 WHERE session_id = %(session)s AND number BETWEEN %(first)s AND %(last)s
 ORDER BY number
"""

# Of equal values, those of earlier turns come first.
_LARGEST: LiteralString = """
WITH stretch AS MATERIALIZED (
    SELECT number, growths, costs, estimated_outputs FROM agent_sessions_turnstretch
     WHERE session_id = %(session)s
)
SELECT coalesce(max(number) + 1, 0) * %(size)s,
       ARRAY(SELECT value FROM stretch, unnest(growths) AS value
              ORDER BY value >> 32 DESC, value LIMIT %(most)s),
       ARRAY(SELECT value FROM stretch, unnest(costs) AS value
              ORDER BY value >> 32 DESC, value LIMIT %(most)s),
       coalesce(sum(estimated_outputs), 0)::int
  FROM stretch
"""

# The previous call of a cache miss is among the hundred turns before: older ones are not in the cache.
# `misses` (`charts/cache.py`) decides which candidates are misses.
_STRETCHES: LiteralString = """
WITH turn AS (
    SELECT index, prompt_estimate, prompt_served, prompt_reported, cost_microusd, billed,
           first_position, message_count, output_reported IS NOT NULL AS is_estimated,
           client_compaction IS NOT NULL OR output_spike IS NOT NULL AS is_marked,
           coalesce(prompt_served - lag(prompt_served, 1, 0) OVER turns,
                    prompt_estimate - lag(prompt_estimate, 1, 0) OVER turns) AS growth,
           extract(epoch FROM at - lag(at) OVER turns)::bigint AS pause,
           CASE WHEN billed AND prompt_reported IS NOT NULL THEN
               least(prompt_reported, CASE WHEN lag(cache_write_tokens) OVER calls > 0
                                           THEN lag(cache_read_tokens + cache_write_tokens) OVER calls
                                           ELSE lag(prompt_reported) OVER calls END)
           END AS expected,
           cache_read_tokens AS hit, lag(index) OVER calls AS before
      FROM agent_sessions_turn
     WHERE session_id = %(session)s AND index >= %(first)s - 100 AND index < %(end)s
    WINDOW turns AS (ORDER BY index),
           calls AS (PARTITION BY billed AND prompt_reported IS NOT NULL ORDER BY index)
), stretch AS (
    SELECT index / %(size)s AS number,
           ARRAY[min(prompt_estimate::bigint << 32 | index), max(prompt_estimate::bigint << 32 | index),
                 min(prompt_served::bigint << 32 | index), max(prompt_served::bigint << 32 | index),
                 min(prompt_reported::bigint << 32 | index), max(prompt_reported::bigint << 32 | index),
                 min(least(cost_microusd, 2147483647) << 32 | index),
                 max(least(cost_microusd, 2147483647) << 32 | index)],
           coalesce((array_agg(growth::bigint << 32 | index ORDER BY growth DESC, index)
                     FILTER (WHERE growth > 0))[1:%(most)s], '{}'),
           coalesce((array_agg(least(cost_microusd, 2147483647) << 32 | index
                           ORDER BY cost_microusd DESC, index)
                     FILTER (WHERE billed AND cost_microusd > 0))[1:%(most)s], '{}'),
           coalesce(array_agg(pause << 32 | index ORDER BY index) FILTER (WHERE pause >= 300), '{}'),
           coalesce(array_agg((expected - hit)::bigint << 32 | index ORDER BY index)
                    FILTER (WHERE hit < 0.5 * expected), '{}'),
           coalesce(array_agg(before ORDER BY index) FILTER (WHERE hit < 0.5 * expected), '{}'),
           coalesce(array_agg(index ORDER BY index) FILTER (WHERE is_marked), '{}'),
           count(*) FILTER (WHERE is_estimated) AS estimated_outputs,
           min(first_position) AS first, max(first_position + message_count) AS last
      FROM turn WHERE index >= %(first)s
     GROUP BY 1
)
SELECT stretch.*, sums.*
  FROM stretch CROSS JOIN LATERAL (
      SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(tokens) FILTER (WHERE role = 'system'), 0)
        FROM agent_sessions_message
       WHERE session_id = %(session)s AND position >= stretch.first AND position < stretch.last
  ) sums
 ORDER BY number
"""
