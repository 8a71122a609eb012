"""Filling the sums of trends from the turns, outside of every push.

Turns are appended under the session's lock, so a count of turns says which of them the sums contain: what is
behind it is added, whatever its time, and a turn that comes late lands in its own quarter. Who changes stored
turns (an import that writes the end of a log anew) calls `rollups_forget`, and the session is summed from its
beginning. All of it is whole numbers, so the sums are those of the turns.

What a compaction saved is estimated: the tokens that the edits kept out of a prompt would have stood in its
cached beginning. So they are taken at the model's price for cached tokens where the call read from the cache,
and at its price for uncached ones where it read none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from itertools import takewhile
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce, Least
from django.utils import timezone

import pricing
from sessions.models import AgentSession, RollupCursor, UsageRollup
from sessions.selectors.recent_activity import RECENT, sessions_active_since

#: Whoever fills holds this lock alone, who forgets shares it: no sums of turns that are being replaced.
_LOCK = 0x726F6C6C

#: Sessions, and turns of one session, that one transaction sums.
_SESSIONS, _TURNS = 50, 20_000


def rollups_fill(*, most_batches: int = 200, everywhere: bool = False) -> int:
    """Adds what the sums lack of the sessions that moved within the last hour; `everywhere`: of all. Answers
    how many turns were summed."""
    found = AgentSession.objects.all()
    if not everywhere:
        found = found.filter(pk__in=sessions_active_since(timezone.now() - RECENT))
    return sum(takewhile(bool, (_fill_batch(found) for _ in range(most_batches))))


def rollup_fill(*, session_id: UUID) -> None:
    """Adds what the sums of one session lack."""
    while _fill_batch(AgentSession.objects.filter(pk=session_id)):
        pass


def rollups_forget(*sessions: UUID) -> None:
    """The sessions are summed anew at the next filling. Call it in the transaction that changes turns."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [_LOCK])
    UsageRollup.objects.filter(session__in=sessions).delete()
    RollupCursor.objects.filter(session__in=sessions).delete()


@transaction.atomic
def _fill_batch(found: QuerySet[AgentSession]) -> int:
    """Adds up to one batch of what the sums of these sessions lack; how many turns."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        due = _due(found)
        if not due:
            return 0
        ids, firsts, ends = (list(column) for column in zip(*due, strict=True))
        # Every turn that the first statement has counted is visible to this one.
        cursor.execute(_SUMS, {"ids": ids, "firsts": firsts, "ends": ends})
        sums = [_priced(row) for row in cursor.fetchall()]
        if sums:
            cursor.execute(_ADD, dict(zip(_COLUMNS, map(list, zip(*sums, strict=True)), strict=True)))
        cursor.execute(_MOVE, {"ids": ids, "ends": ends})
    return int(sum(ends) - sum(firsts))


def _due(found: QuerySet[AgentSession]) -> Sequence[tuple[UUID, int, int]]:
    """Sessions with the turns that their sums lack: from the first, up to before the last."""
    summed = Coalesce("rollupcursor__turns", 0)
    rows = found.annotate(first=summed, end=Least("turn_count", summed + _TURNS))
    return list(rows.filter(turn_count__gt=F("first")).values_list("pk", "first", "end")[:_SESSIONS])


def _priced(row: Sequence[Any]) -> Sequence[Any]:
    """The sums with what the hidden tokens would have cost in place of their two parts."""
    *sums, read, fresh = row
    at, model = sums[2], sums[3]
    cached, uncached = input_rates(model, at.replace(hour=0, minute=0, second=0, microsecond=0))
    saved = int((cached * read + uncached * fresh) * 1_000_000)
    return [*sums, read + fresh, max(saved, 0)]


@lru_cache(4096)
def input_rates(model: str, day: datetime) -> tuple[Decimal, Decimal]:
    """Dollars of one cached and of one uncached input token; nothing where the model has no price."""
    table = pricing.rates(model, day)
    return (table[0].cache_read, table[0].uncached) if table else (Decimal(0), Decimal(0))


#: The hidden tokens by the provider's count, which is ours times what it reported of the prompt over what we
#: counted. Never more than the model's window would have taken: a longer prompt could not have been sent.
_RAW = "t.prompt_estimate::bigint * t.prompt_reported / greatest(t.prompt_served, 1)"
_HIDDEN = f"greatest(least({_RAW}, coalesce(s.context_window, {_RAW})) - t.prompt_reported, 0)"
_SHRUNK = "t.prompt_reported IS NOT NULL AND t.prompt_estimate > t.prompt_served"

_SUMS = f"""
SELECT s.project_id, s.id, date_bin('15 minutes', t.at, '2000-01-01Z') AS quarter,
       coalesce(nullif(t.model, ''), s.model) AS used, count(*),
       count(*) FILTER (WHERE t.prompt_reported IS NOT NULL AND t.cost_microusd IS NULL),
       coalesce(sum(t.uncached_tokens), 0)::bigint, coalesce(sum(t.cache_read_tokens), 0)::bigint,
       coalesce(sum(t.cache_write_tokens), 0)::bigint, coalesce(sum(t.output_tokens), 0)::bigint,
       coalesce(sum(t.cost_microusd), 0)::bigint,
       coalesce(sum({_HIDDEN}) FILTER (WHERE {_SHRUNK} AND t.cache_read_tokens > 0), 0)::bigint,
       coalesce(sum({_HIDDEN}) FILTER (WHERE {_SHRUNK} AND t.cache_read_tokens = 0), 0)::bigint
  FROM unnest(%(ids)s::uuid[], %(firsts)s::int[], %(ends)s::int[]) AS due(id, first, last)
  JOIN {AgentSession._meta.db_table} s ON s.id = due.id
  JOIN agent_sessions_turn t ON t.session_id = due.id AND t.index >= due.first AND t.index < due.last
 WHERE t.billed
 GROUP BY s.id, quarter, used
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
)
_COLUMNS = _KEYS + _ADDED
_TYPES = dict(zip(_KEYS, ("uuid", "uuid", "timestamptz", "text"), strict=True))

_ADD = f"""
INSERT INTO {UsageRollup._meta.db_table} AS r ({", ".join(_COLUMNS)})
SELECT * FROM unnest({", ".join(f"%({name})s::{_TYPES.get(name, 'bigint')}[]" for name in _COLUMNS)})
ON CONFLICT (session_id, at, model) DO UPDATE
   SET {", ".join(f"{name} = r.{name} + excluded.{name}" for name in _ADDED)}
"""  # noqa: S608

_MOVE = f"""
INSERT INTO {RollupCursor._meta.db_table} (session_id, turns)
SELECT * FROM unnest(%(ids)s::uuid[], %(ends)s::int[])
ON CONFLICT (session_id) DO UPDATE SET turns = excluded.turns
"""  # noqa: S608
