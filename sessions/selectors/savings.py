"""What compaction saved in sessions, and the cost of re-caching.

After a compaction, the messages after its first edit are written to the provider's cache again. This costs
the difference between writing and reading, charged when the next call reports its usage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Sum

from pricing import Rates
from pricing.custom import CustomPrice, rates_at
from sessions.models import AgentSession, Compaction, MemoryExtraction, Turn, UsageRollup
from sessions.selectors.custom_prices import custom_prices

#: SQL conditions: compaction `c` by contextapp changed prompts of session `s`. A fork has copies of its
#: parent's compactions of the messages that they share. `OWN` excludes these copies.
APPLIED = "c.state IN ('done', 'reverted') AND c.trigger <> 'client'"
OWN = f"{APPLIED} AND (s.forked_at IS NULL OR c.snapshot_position > s.forked_at)"

#: Turns after a compaction in which to look for the next call. Turns without an answer may precede it.
_LOOK_AHEAD = 10

#: SQL expression: the tokens that a compaction re-cached, except those that had to be cached anyway.
_RECACHED = """
    ((c.facts->>'tokens_rebilled')::float8 - coalesce((c.facts->>'tokens_new')::float8, 0))
    * coalesce((c.facts->>'calibration')::float8, 1)
"""

_COSTS = f"""
    SELECT s.id,
           coalesce(sum(c.cost_microusd), 0)::bigint
           + (SELECT coalesce(sum(cost_microusd), 0)::bigint
                FROM {MemoryExtraction._meta.db_table} WHERE session_id = s.id)
      FROM {AgentSession._meta.db_table} s
      JOIN {Compaction._meta.db_table} c ON c.session_id = s.id
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


def session_savings(ids: Sequence[UUID], *, prices: Sequence[CustomPrice]) -> Mapping[UUID, SessionSavings]:
    """Return the savings of those sessions of a project that were compacted. Three queries.

    `prices` are the project's custom prices.
    """
    if not ids:
        return {}
    costs = _costs(ids, prices)
    sums = UsageRollup.objects.filter(session_id__in=ids, hidden_tokens__gt=0).values("session_id")
    return {
        row["session_id"]: SessionSavings(
            tokens=row["tokens"], microusd=row["microusd"] - costs.get(row["session_id"], 0)
        )
        for row in sums.annotate(tokens=Sum("hidden_tokens"), microusd=Sum("saved_microusd"))
    }


def savings_of_session(session: AgentSession) -> SessionSavings | None:
    """Return the savings of a session, or None if none are known. At most three queries."""
    if not session.compaction_count:
        return None
    return session_savings([session.pk], prices=custom_prices(session.project)).get(session.pk)


def _costs(ids: Sequence[UUID], prices: Sequence[CustomPrice]) -> Mapping[UUID, int]:
    """Return the costs that are deducted from the savings, in micro-dollars."""
    with connection.cursor() as cursor:
        cursor.execute(_COSTS, [list(ids)])
        spent = dict(cursor.fetchall())
    recached = recaching_costs(
        key="s.id", condition="s.id = ANY(%(ids)s)", parameters={"ids": list(ids)}, prices=lambda _: prices
    )
    return {id: spent.get(id, 0) + recached.get(id, 0) for id in ids}


def recaching_costs(
    *,
    key: str,
    condition: str,
    parameters: Mapping[str, Any],
    prices: Callable[[Any], Sequence[CustomPrice]],
    join: str = "",
) -> Mapping[Any, int]:
    """Return the extra cost of the tokens that compactions re-cached, in micro-dollars by `key`. One query.

    The next call wrote them to the cache instead of reading them from it, at the custom or public prices of
    its day; `prices` returns the custom prices of a key. `key`, `condition` and `join` are SQL and may refer
    to the compaction `c`, its session `s` and the next call, `following`.
    """
    sql = f"""
        SELECT {key}, following.model, date_trunc('day', following.at, 'UTC'), sum({_RECACHED})
          FROM {Compaction._meta.db_table} c
          JOIN {AgentSession._meta.db_table} s ON s.id = c.session_id
          JOIN LATERAL (
                SELECT t.at, coalesce(nullif(t.model, ''), s.model) AS model
                  FROM {Turn._meta.db_table} t
                 WHERE t.session_id = c.session_id AND t.index > c.turn_index
                       AND t.index <= c.turn_index + {_LOOK_AHEAD} AND t.prompt_reported IS NOT NULL
                 ORDER BY t.index LIMIT 1) following ON true
          {join}
         WHERE {OWN} AND {condition}
         GROUP BY 1, 2, 3
    """  # noqa: S608  every interpolated value is a constant of this package
    costs: Counter[Any] = Counter()
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        for group, model, day, tokens in cursor.fetchall():
            costs[group] += _recaching_cost(rates_at(prices(group), model, day), int(tokens or 0))
    return costs


def _recaching_cost(rates: Rates | None, tokens: int) -> int:
    if rates is None:
        return 0
    difference = max(rates.cache_write - rates.cache_read, Decimal(0))
    return int(difference * tokens * 1_000_000)
