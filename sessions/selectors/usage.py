"""Usage in a period: turns, tokens and cost by day, model, agent and tag.

Reads the same sums as trends, and the turns that are not in them yet. The run time depends on the length of
the period, not on the amount of older data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from sessions.selectors.days import Span
from sessions.selectors.trends.rows import usage_rows, whole_days

#: The SQL expression of each group, over the sums of one session, day and model.
_KEYS = {
    "day": "spent.day",
    "model": "spent.model",
    "agent": "spent.agent",
    "tag": "coalesce(tag, '')",
}
GROUPS = tuple(_KEYS)

#: The sums, each with the column that it adds up.
_SUMS = {
    "turns": "turns",
    "unpriced_turns": "unpriced_turns",
    "uncached": "uncached_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "output": "output_tokens",
    "cost_microusd": "cost_microusd",
}
_TOTALS = ", ".join(f"sum(r.{column}) AS {name}" for name, column in _SUMS.items())

_SPENT = f"""
WITH spent AS (
    SELECT (r.at AT TIME ZONE %(zone)s)::date AS day, coalesce(nullif(r.model, ''), s.model) AS model,
           s.agent, s.tags, {_TOTALS}
      FROM (
        {usage_rows(tuple(_SUMS.values()))}
        UNION ALL
        SELECT t.session_id, t.at, t.model, 1,
               (t.prompt_reported IS NOT NULL AND t.cost_microusd IS NULL)::int,
               t.uncached_tokens, t.cache_read_tokens, t.cache_write_tokens, t.output_tokens, t.cost_microusd
          FROM agent_sessions_agentsession new
          LEFT JOIN agent_sessions_rollupcursor summed ON summed.session_id = new.id
          JOIN agent_sessions_turn t ON t.session_id = new.id AND t.index >= coalesce(summed.turns, 0)
         -- `last_active_at` is updated at most once per second, so it may be older than the last turn.
         WHERE new.project_id = %(project)s
           AND new.last_active_at >= %(start)s::timestamptz - interval '1 second'
           AND new.turn_count > coalesce(summed.turns, 0)
           AND t.at >= %(start)s AND t.at < %(end)s AND t.billed
      ) r
      JOIN agent_sessions_agentsession s ON s.id = r.session_id
     GROUP BY day, r.model, s.id
)
"""  # noqa: S608  the pieces are names


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotals:
    """Totals of one group, or of all. Tokens are billed tokens; cost is in micro-dollars."""

    group: Mapping[str, Any]
    turns: int
    unpriced_turns: int
    uncached: int
    cache_read: int
    cache_write: int
    output: int
    cost_microusd: int


def usage_sums(
    *, project_id: UUID, span: Span, groups: Sequence[str], limit: int
) -> tuple[UsageTotals, list[UsageTotals]]:
    """Return the total and at most `limit` groups, sorted by name.

    Turns billed to another session (the history of a fork) are left out. A session with several tags counts
    toward each of them; the total counts it once.
    """
    start, end = span.bounds()
    parameters: dict[str, Any] = {
        "zone": span.zone.key,
        "project": project_id,
        "start": start,
        "end": end,
        "limit": limit + 1,
        **whole_days(span, "day" if "day" in groups else ""),
    }
    with connection.cursor() as cursor:
        cursor.execute(_sql(groups), parameters)
        rows = cursor.fetchall()
    totals = [_totals(groups, row) for row in rows]
    return totals[0], totals[1:]


def _sql(groups: Sequence[str]) -> str:
    sums = ", ".join(f"coalesce(sum({name}), 0)::bigint AS {name}" for name in _SUMS)
    keys = [_KEYS[group] for group in groups]
    columns = "".join(f"{key} AS key{index}, " for index, key in enumerate(keys))
    names = ", ".join(f"key{index}" for index in range(len(keys)))
    none = "".join("NULL, " for _ in keys)
    tags = "LEFT JOIN LATERAL unnest(spent.tags) AS tag ON true" if "tag" in groups else ""
    # Every interpolated value is a constant of this module.
    grouped = f"""
        UNION ALL
        SELECT * FROM (SELECT 1, {columns}{sums} FROM spent {tags} GROUP BY {names}) g
    """  # noqa: S608
    return f"""{_SPENT}
        SELECT * FROM (SELECT 0 AS part, {none}{sums} FROM spent {grouped if keys else ""}) u
         ORDER BY 1{"".join(f", {index + 2}" for index in range(len(keys)))} LIMIT %(limit)s
    """  # noqa: S608


def _totals(groups: Sequence[str], row: Any) -> UsageTotals:
    _, *values = row
    keys, sums = values[: len(groups)], values[len(groups) :]
    return UsageTotals(group=dict(zip(groups, keys, strict=True)), **dict(zip(_SUMS, sums, strict=True)))
