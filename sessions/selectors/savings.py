"""What compaction saved in sessions, and the cost of re-caching.

After a compaction, everything behind its first edit is written to the provider's cache again. This costs the
difference between writing and reading, charged when the next call reports its usage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import connection
from django.db.models import Sum

import pricing
from sessions.models import AgentSession, Compaction, MemoryExtraction, Turn, UsageRollup

#: The tokens that a compaction `c` of contextapp re-caches, in SQL. `NEXT_CALL` joins the call that does so.
RECACHED_TOKENS = "(c.facts->>'tokens_rebilled')::float8 * coalesce((c.facts->>'calibration')::float8, 1)"
APPLIED = "c.state IN ('done', 'reverted') AND c.trigger <> 'client'"
NEXT_CALL = f"""
    LEFT JOIN {Turn._meta.db_table} following
      ON following.session_id = c.session_id AND following.index = c.turn_index + 1
         AND following.prompt_reported IS NOT NULL
"""

_COSTS = f"""
    SELECT s.id, s.model, s.started_at,
           coalesce(sum({RECACHED_TOKENS}) FILTER (WHERE {APPLIED} AND following.at IS NOT NULL), 0),
           coalesce(sum(c.cost_microusd), 0)::bigint
           + (SELECT coalesce(sum(cost_microusd), 0)::bigint
                FROM {MemoryExtraction._meta.db_table} WHERE session_id = s.id)
      FROM {AgentSession._meta.db_table} s
      JOIN {Compaction._meta.db_table} c ON c.session_id = s.id
           {NEXT_CALL}
     WHERE s.id = ANY(%s)
     GROUP BY s.id
"""  # noqa: S608  every interpolated value is a constant of this module


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSavings:
    """What compaction saved in a session, summed over its calls.

    `tokens` are provider tokens. `microusd` is their price minus the cost of re-caching, summaries and memory
    extraction. As of the last update of the rollups.
    """

    tokens: int
    microusd: int


def session_savings(ids: Sequence[UUID]) -> Mapping[UUID, SessionSavings]:
    """Return what compaction saved in those of the sessions that were compacted. Two queries."""
    if not ids:
        return {}
    costs = _costs(ids)
    sums = UsageRollup.objects.filter(session_id__in=ids, hidden_tokens__gt=0).values("session_id")
    return {
        row["session_id"]: SessionSavings(
            tokens=row["tokens"], microusd=row["microusd"] - costs.get(row["session_id"], 0)
        )
        for row in sums.annotate(tokens=Sum("hidden_tokens"), microusd=Sum("saved_microusd"))
    }


def _costs(ids: Sequence[UUID]) -> Mapping[UUID, int]:
    """Return the costs that are deducted from the savings, in micro-dollars."""
    with connection.cursor() as cursor:
        cursor.execute(_COSTS, [list(ids)])
        rows = cursor.fetchall()
    return {id: recaching_cost(model, tokens, at) + spent for id, model, at, tokens, spent in rows}


def recaching_cost(model: str, tokens: float, at: datetime) -> int:
    """Return the extra cost of tokens written to the cache instead of read from it, in micro-dollars.

    Uses the public prices of `at`.
    """
    table = pricing.rates(model, at.replace(minute=0, second=0, microsecond=0))
    if not table:
        return 0
    difference = max(table[0].cache_write - table[0].cache_read, Decimal(0))
    return int(difference * int(tokens) * 1_000_000)
