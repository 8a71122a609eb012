"""Stretches of a long session's turns, which its pages read instead of the turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString, NamedTuple
from uuid import UUID

from sessions.models import TurnStretch
from sessions.store.postgres import rows_fetch

#: Number of turns from which a session has stretches.
LONG = 10_000


class Stretch(NamedTuple):
    """A stretch; see `TurnStretch` for its columns. Values are packed with the index of their turn."""

    number: int
    extremes: Sequence[int | None]
    growths: Sequence[int]
    pauses: Sequence[int]
    misses: Sequence[int]
    missed_after: Sequence[int]
    marked: Sequence[int]

    @property
    def first(self) -> int:
        return self.number * TurnStretch.TURNS

    @property
    def end(self) -> int:
        """The index after the last turn."""
        return self.first + TurnStretch.TURNS


def turn_of(packed: int) -> int:
    """Return the index of the turn of a packed value."""
    return packed & 0xFFFFFFFF


def stretches(*, session_id: UUID, first: int, end: int) -> list[Stretch]:
    """Return the stretches that lie in the turns from `first` up to `end`, in order.

    Reads those that a worker has stored, and computes the others. Two queries.
    """
    number, last = -(-first // TurnStretch.TURNS), end // TurnStretch.TURNS - 1
    rows = TurnStretch.objects.filter(session_id=session_id, number__gte=number, number__lte=last)
    found = [Stretch(*row) for row in rows.order_by("number").values_list(*Stretch._fields)]
    computed = found[-1].number + 1 if found else number
    if computed <= last:
        found += stretches_compute(session_id=session_id, number=computed, last=last)
    return found


def stretches_compute(*, session_id: UUID, number: int, last: int) -> list[Stretch]:
    """Return the stretches `number` to `last`, computed from their turns. One query."""
    size = TurnStretch.TURNS
    parameters = {"session": session_id, "first": number * size, "end": (last + 1) * size, "size": size}
    return [Stretch(*row) for row in rows_fetch(_STRETCHES, parameters)]


# The previous call of a cache miss is among the hundred turns before: older ones are not in the cache.
# `misses` (`charts/cache.py`) decides which candidates are misses.
_STRETCHES: LiteralString = """
WITH turn AS (
    SELECT index, prompt_estimate, prompt_served, prompt_reported, cost_microusd,
           client_compaction IS NOT NULL OR output_spike IS NOT NULL AS is_marked,
           prompt_estimate - coalesce(lag(prompt_estimate) OVER turns, 0) AS growth,
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
)
SELECT index / %(size)s,
       ARRAY[min(prompt_estimate::bigint << 32 | index), max(prompt_estimate::bigint << 32 | index),
             min(prompt_served::bigint << 32 | index), max(prompt_served::bigint << 32 | index),
             min(prompt_reported::bigint << 32 | index), max(prompt_reported::bigint << 32 | index),
             min(least(cost_microusd, 2147483647) << 32 | index),
             max(least(cost_microusd, 2147483647) << 32 | index)],
       coalesce((array_agg(growth::bigint << 32 | index ORDER BY growth DESC, index)
                 FILTER (WHERE growth > 0))[1:5], '{}'),
       coalesce(array_agg(pause << 32 | index ORDER BY index) FILTER (WHERE pause >= 300), '{}'),
       coalesce(array_agg((expected - hit)::bigint << 32 | index ORDER BY index)
                FILTER (WHERE hit < 0.5 * expected), '{}'),
       coalesce(array_agg(before ORDER BY index) FILTER (WHERE hit < 0.5 * expected), '{}'),
       coalesce(array_agg(index ORDER BY index) FILTER (WHERE is_marked), '{}')
  FROM turn WHERE index >= %(first)s
 GROUP BY 1 ORDER BY 1
"""
