"""Maintain the usage sums of trends, outside of pushes.

Turns are only appended, under the session's lock, so the number of summed turns identifies the missing ones.
A turn that arrives late is added to the quarter of an hour in which it happened. Code that changes stored
turns, such as the import of a rewritten log, calls `rollups_invalidate`; the session is then summed again
from its start. All sums are integers, so they equal those of the turns exactly.

Savings are estimated: tokens that edits kept out of a prompt would have been part of its cached start. They
are priced as cached tokens if the call read from the cache, else as uncached tokens, at the custom or public
prices of the call's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Max, QuerySet
from django.db.models.functions import Coalesce, Least
from django.utils import timezone

from pricing.custom import CustomPrice, rates_at
from sessions.models import (
    AgentSession,
    CallHistogram,
    DailyUsage,
    RollupCursor,
    TurnStretch,
    UsageRollup,
)
from sessions.selectors.charts.stretches import LONG, stretches_compute
from sessions.selectors.custom_prices import project_prices
from sessions.selectors.recent_activity import RECENT, sessions_active_since

#: Version of the calculation. Increase it when the same turns give other sums: those of earlier versions are
#: then calculated again. Version 0 counted content that the agent does not push as savings.
VERSION = 1

#: Advisory lock: exclusive while sums are added, shared while sessions are invalidated, so that turns are not
#: summed while they are being replaced.
_LOCK = 0x726F6C6C

#: Sessions, and turns per session, that one transaction sums.
_SESSIONS, _TURNS = 50, 20_000


#: Locks sessions before their sums, as other writers do, and leaves out those that one of them has locked.
_KEEP_SESSIONS = """
SELECT id FROM agent_sessions_agentsession WHERE id = ANY(%s) FOR KEY SHARE SKIP LOCKED
"""


def rollups_fill(*, most_batches: int = 200, everywhere: bool = False) -> int:
    """Add the missing turns of recently active sessions, or of all sessions. Returns the number of turns.

    With `everywhere`, sums of earlier versions are calculated again, a few sessions at a time.
    """
    found = AgentSession.objects.all()
    if everywhere:
        while most_batches > 0 and (outdated := _discard_outdated()):
            _fill_batch(found.filter(pk__in=outdated))  # finding missing turns reads all sessions
            most_batches -= 1
    else:
        found = found.filter(pk__in=sessions_active_since(timezone.now() - RECENT))
    return sum(takewhile(bool, (_fill_batch(found) for _ in range(most_batches))))


def rollup_fill(*, session_id: UUID) -> None:
    """Add the missing turns of one session."""
    while _fill_batch(AgentSession.objects.filter(pk=session_id)):
        pass


def rollups_invalidate(*sessions: UUID) -> None:
    """Discard the sums of these sessions. Call it in the transaction that changes their turns."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [_LOCK])
    UsageRollup.objects.filter(session__in=sessions).delete()
    DailyUsage.objects.filter(session__in=sessions).delete()
    CallHistogram.objects.filter(session__in=sessions).delete()
    TurnStretch.objects.filter(session__in=sessions).delete()
    RollupCursor.objects.filter(session__in=sessions).delete()


@transaction.atomic
def _discard_outdated() -> Sequence[UUID]:
    """Discard the sums of some sessions that an earlier version calculated. Returns the sessions' ids."""
    outdated = RollupCursor.objects.exclude(version=VERSION).values_list("pk", flat=True)[:_SESSIONS]
    ids = list(outdated)
    rollups_invalidate(*ids)
    return ids


@transaction.atomic
def _fill_batch(found: QuerySet[AgentSession]) -> int:
    """Add one batch of missing turns. Returns the number of turns."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        missing = _missing_turns(found)
        cursor.execute(_KEEP_SESSIONS, [[id for id, _, _ in missing]])
        kept = {id for (id,) in cursor.fetchall()}
        missing = [row for row in missing if row[0] in kept]
        if not missing:
            return 0
        ids, firsts, ends = (list(column) for column in zip(*missing, strict=True))
        # This statement sees all turns that the first one has counted.
        cursor.execute(_SUMS, {"ids": ids, "firsts": firsts, "ends": ends})
        names = [column.name for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        prices = project_prices({row["project_id"] for row in rows})
        sums = [_with_savings(row, prices.get(row["project_id"], ())) for row in rows]
        if sums:
            parameters = {name: [row[name] for row in sums] for name in _COLUMNS}
            cursor.execute(_ADD, parameters)
            cursor.execute(_ADD_DAYS, parameters)
        cursor.execute(_ADD_HISTOGRAMS, {"ids": ids, "firsts": firsts, "ends": ends})
        cursor.execute(_MOVE, {"ids": ids, "ends": ends})
    for id, end in zip(ids, ends, strict=True):
        if end > LONG:
            _add_stretches(id, end)
    return int(sum(ends) - sum(firsts))


def _add_stretches(session_id: UUID, end: int) -> None:
    """Store the complete stretches of a session's turns before `end` that are missing."""
    known = TurnStretch.objects.filter(session_id=session_id).aggregate(last=Max("number"))["last"]
    number, last = (0 if known is None else known + 1), end // TurnStretch.TURNS - 1
    if number <= last:
        found = stretches_compute(session_id=session_id, number=number, last=last)
        TurnStretch.objects.bulk_create(
            TurnStretch(session_id=session_id, **stretch._asdict()) for stretch in found
        )


def _missing_turns(found: QuerySet[AgentSession]) -> Sequence[tuple[UUID, int, int]]:
    """Return sessions with the first missing turn of each, and the end of the turns to sum."""
    summed = Coalesce("rollupcursor__turns", 0)
    rows = found.annotate(first=summed, end=Least("turn_count", summed + _TURNS))
    return list(rows.filter(turn_count__gt=F("first")).values_list("pk", "first", "end")[:_SESSIONS])


def _with_savings(sums: dict[str, Any], prices: Sequence[CustomPrice]) -> dict[str, Any]:
    """Return the sums with the number of hidden tokens and what they would have cost."""
    rates = rates_at(prices, sums["model"], sums["at"])
    cached, uncached = sums["hidden_cached"], sums["hidden_uncached"]
    saved = int((rates.cache_read * cached + rates.uncached * uncached) * 1_000_000) if rates else 0
    return {**sums, "hidden_tokens": cached + uncached, "saved_microusd": max(saved, 0)}


#: Hidden tokens in the provider's tokens: the difference of the estimates, scaled by the ratio of the
#: reported prompt to its estimate. The ratio is at most the calibration factor: a higher one is due to
#: content that the agent sends but does not push, which edits do not remove. With the hidden tokens, a prompt
#: is at most as long as the model's window, because a longer one could not have been sent.
_FACTOR = "least(t.prompt_reported::float8 / greatest(t.prompt_served, 1), t.calibration_factor)"
_RAW = f"round((t.prompt_estimate - t.prompt_served) * {_FACTOR})::bigint"
_HIDDEN = f"greatest(least({_RAW}, s.context_window - t.prompt_reported), 0)"
_SHRUNK = "t.prompt_reported IS NOT NULL AND t.prompt_estimate > t.prompt_served"

_SUMS = f"""
SELECT s.project_id, s.id AS session_id, date_bin('15 minutes', t.at, '2000-01-01Z') AS at,
       coalesce(nullif(t.model, ''), s.model) AS model, count(*) AS turns,
       count(*) FILTER (WHERE t.prompt_reported IS NOT NULL AND t.cost_microusd IS NULL) AS unpriced_turns,
       coalesce(sum(t.uncached_tokens), 0)::bigint AS uncached_tokens,
       coalesce(sum(t.cache_read_tokens), 0)::bigint AS cache_read_tokens,
       coalesce(sum(t.cache_write_tokens), 0)::bigint AS cache_write_tokens,
       coalesce(sum(t.output_tokens), 0)::bigint AS output_tokens,
       coalesce(sum(t.cost_microusd), 0)::bigint AS cost_microusd,
       count(*) FILTER (WHERE t.client_compaction IS NOT NULL) AS client_compactions,
       coalesce(sum({_HIDDEN}) FILTER (WHERE {_SHRUNK} AND t.cache_read_tokens > 0), 0)::bigint
         AS hidden_cached,
       coalesce(sum({_HIDDEN}) FILTER (WHERE {_SHRUNK} AND t.cache_read_tokens = 0), 0)::bigint
         AS hidden_uncached
  FROM unnest(%(ids)s::uuid[], %(firsts)s::int[], %(ends)s::int[]) AS missing(id, first, last)
  JOIN {AgentSession._meta.db_table} s ON s.id = missing.id
  JOIN agent_sessions_turn t
    ON t.session_id = missing.id AND t.index >= missing.first AND t.index < missing.last
 WHERE t.billed
 GROUP BY s.id, 3, 4
"""  # noqa: S608  every piece is a name or an expression written in this file

_KEYS = ("project_id", "session_id", "at", "model")
_ADDED = (
    "turns",
    "unpriced_turns",
    "uncached_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "cost_microusd",
    "hidden_tokens",
    "saved_microusd",
    "client_compactions",
)
_COLUMNS = _KEYS + _ADDED
_TYPES = dict(zip(_KEYS, ("uuid", "uuid", "timestamptz", "text"), strict=True))

_NEW = ", ".join(f"%({name})s::{_TYPES.get(name, 'bigint')}[]" for name in _COLUMNS)
_ON_CONFLICT = f"""
ON CONFLICT (session_id, at, model) DO UPDATE
   SET {", ".join(f"{name} = r.{name} + excluded.{name}" for name in _ADDED)}
"""  # noqa: S608

_ADD = f"""
INSERT INTO {UsageRollup._meta.db_table} AS r ({", ".join(_COLUMNS)})
SELECT * FROM unnest({_NEW})
{_ON_CONFLICT}
"""  # noqa: S608

_ADD_DAYS = f"""
INSERT INTO {DailyUsage._meta.db_table} AS r ({", ".join(_COLUMNS)})
SELECT project_id, session_id, date_trunc('day', at, 'UTC'), model,
       {", ".join(f"sum({name})" for name in _ADDED)}
  FROM unnest({_NEW}) AS new ({", ".join(_COLUMNS)})
 GROUP BY 1, 2, 3, 4
{_ON_CONFLICT}
"""  # noqa: S608

_ADD_HISTOGRAMS = f"""
INSERT INTO {CallHistogram._meta.db_table} AS r (project_id, session_id, at, model, measure, slot, calls)
SELECT s.project_id, s.id, date_bin('15 minutes', t.at, '2000-01-01Z'),
       coalesce(nullif(t.model, ''), s.model),
       taken.measure, floor(4 * log(2, greatest(taken.value, 1)::numeric))::int, count(*)
  FROM unnest(%(ids)s::uuid[], %(firsts)s::int[], %(ends)s::int[]) AS missing(id, first, last)
  JOIN {AgentSession._meta.db_table} s ON s.id = missing.id
  JOIN agent_sessions_turn t
    ON t.session_id = missing.id AND t.index >= missing.first AND t.index < missing.last
 CROSS JOIN LATERAL (VALUES ('{CallHistogram.Measure.FIRST}', t.first_token_ms),
                            ('{CallHistogram.Measure.DURATION}', t.duration_ms),
                            ('{CallHistogram.Measure.PROMPT}', t.prompt_reported))
           AS taken(measure, value)
 WHERE t.billed AND taken.value IS NOT NULL
 GROUP BY s.project_id, s.id, 3, 4, 5, 6
ON CONFLICT (session_id, at, model, measure, slot) DO UPDATE SET calls = r.calls + excluded.calls
"""  # noqa: S608

_MOVE = f"""
INSERT INTO {RollupCursor._meta.db_table} (session_id, turns, version)
SELECT *, {VERSION} FROM unnest(%(ids)s::uuid[], %(ends)s::int[])
ON CONFLICT (session_id) DO UPDATE SET turns = excluded.turns
"""  # noqa: S608
