"""Usage in a period by bucket (day, week or month) and group.

Reads `UsageRollup` by the index on project and time; agent, tags and member come from the session. A session
with several tags counts towards each of them, so the sum over tags is not the total.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db import connection

from sessions.models import AgentSession, UsageRollup
from sessions.selectors.usage import Span

BUCKETS = ("day", "week", "month")

#: The SQL expression of each group; "" for sessions without a value.
GROUP_KEYS = {
    "agent": "s.agent",
    "model": "coalesce(nullif(r.model, ''), s.model)",
    "tag": "coalesce(tag, '')",
    "member": "coalesce(s.created_by_id::text, '')",
    "session": "s.id::text",
}
GROUPS = tuple(GROUP_KEYS)
#: Separates the keys of a row that is grouped by two properties.
SEPARATOR = "\x1f"


def group_names(group: str) -> Sequence[str]:
    """Return the properties of a grouping: one, or two separated by a comma."""
    return group.split(",")


def group_key(group: str) -> str:
    """Return the SQL expression of a grouping's key."""
    keys = [GROUP_KEYS[name] for name in group_names(group)]
    return keys[0] if len(keys) == 1 else f"concat_ws(chr(31), {', '.join(keys)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendQuery:
    """A period and its filters. Empty filters are ignored. `member` is the id of a user."""

    span: Span
    agent: str = ""
    model: str = ""
    tag: str = ""
    member: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Billed tokens, and cost in micro-dollars. See `UsageRollup` for the last three fields."""

    turns: int = 0
    unpriced_turns: int = 0
    uncached_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int = 0
    hidden_tokens: int = 0
    saved_microusd: int = 0
    client_compactions: int = 0

    @property
    def input_tokens(self) -> int:
        return self.uncached_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def unshrunk_tokens(self) -> int:
        """Input tokens that the calls would have had without compaction."""
        return self.input_tokens + self.hidden_tokens

    def __add__(self, other: Sums) -> Sums:
        return Sums(**{name: getattr(self, name) + getattr(other, name) for name in _SUMMED})


_SUMMED = tuple(field.name for field in fields(Sums))
_INNER = ", ".join(f"sum({name}) AS {name}" for name in _SUMMED)
_SUMS = ", ".join(f"sum(r.{name})::bigint" for name in _SUMMED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """Usage of one group in one bucket, which is identified by its first day."""

    bucket: date
    key: str
    sums: Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class TopSession:
    """Usage of one of the most expensive sessions."""

    id: UUID
    title: str
    agent: str
    sums: Sums


def trend_rows(*, project_id: UUID, query: TrendQuery, bucket: str, group: str) -> list[TrendRow]:
    """Return usage by bucket and group, unordered. One query."""
    keys, tags = f"r.bucket, {group_key(group)}", "tag" in group_names(group)
    rows = _rows(keys, project_id, query, tags=tags, bucket=bucket)
    return [TrendRow(bucket=day, key=key, sums=_sums(sums)) for day, key, *sums in rows]


def trend_groups(*, project_id: UUID, query: TrendQuery, group: str) -> dict[str, Sums]:
    """Return usage of the whole period by group. One query."""
    rows = _rows(group_key(group), project_id, query, tags="tag" in group_names(group))
    return {key: _sums(sums) for key, *sums in rows}


def trend_total(*, project_id: UUID, query: TrendQuery) -> Sums:
    """Return usage of the whole period. One query."""
    rows = _rows("1", project_id, query)
    return next((_sums(sums) for _, *sums in rows), Sums())


def first_usage(*, project_id: UUID) -> datetime | None:
    """Return the quarter-hour of the project's first usage. One query."""
    rows = UsageRollup.objects.filter(project_id=project_id).order_by("at")
    return rows.values_list("at", flat=True).first()


def top_sessions(*, project_id: UUID, query: TrendQuery, limit: int = 10) -> list[TopSession]:
    """Return sessions with a cost, most expensive first. One query."""
    keys = "s.id, s.title, s.external_id, s.agent"
    order = "HAVING sum(r.cost_microusd) > 0 ORDER BY sum(r.cost_microusd) DESC, s.id"
    rows = _rows(keys, project_id, query, tail=f"{order} LIMIT {int(limit)}")
    return [
        TopSession(id=id, title=title or external_id, agent=agent, sums=_sums(sums))
        for id, title, external_id, agent, *sums in rows
    ]


def _rows(
    keys: str, project_id: UUID, query: TrendQuery, *, tags: bool = False, bucket: str = "", tail: str = ""
) -> list[Sequence[Any]]:
    """Run the query. Sums by session before joining, because sessions are far fewer than rollup rows."""
    assert bucket in {"", *BUCKETS}
    # No quarter-hour spans two days in any time zone.
    begins = f"date_trunc('{bucket}', at AT TIME ZONE %(zone)s)::date" if bucket else "NULL::date"
    unnested = "LEFT JOIN LATERAL unnest(s.tags) AS tag ON true" if tags else ""
    # Every interpolated value is a constant of this module.
    sql = f"""
        SELECT {keys}, {_SUMS}
          FROM (SELECT session_id, model, {begins} AS bucket, {_INNER}
                  FROM {UsageRollup._meta.db_table}
                 WHERE project_id = %(project)s AND at >= %(start)s AND at < %(end)s
                 GROUP BY 1, 2, 3) r
          JOIN {AgentSession._meta.db_table} s ON s.id = r.session_id
          {unnested}
         WHERE true{filter_conditions(query, model=GROUP_KEYS["model"])}
         GROUP BY {keys} {tail}
    """  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, query_parameters(project_id, query))
        found: list[Sequence[Any]] = cursor.fetchall()
    return found


def filter_conditions(query: TrendQuery, *, model: str) -> str:
    """Return the SQL conditions of the filters. `model` is the SQL expression of the model's name."""
    conditions = {
        "agent": "s.agent = %(agent)s",
        "model": f"{model} = %(model)s",
        "tag": "s.tags @> ARRAY[%(tag)s]::varchar[]",
        "member": "s.created_by_id = %(member)s",
    }
    return "".join(f" AND {sql}" for name, sql in conditions.items() if getattr(query, name))


def query_parameters(project_id: UUID, query: TrendQuery) -> dict[str, Any]:
    """Return the parameters of the SQL statements."""
    start, end = query.span.bounds()
    return {
        "project": project_id,
        "zone": query.span.zone.key,
        "start": start,
        "end": end,
        "agent": query.agent,
        "model": query.model,
        "tag": query.tag,
        "member": query.member,
    }


def _sums(values: Sequence[int]) -> Sums:
    return Sums(**dict(zip(_SUMMED, values, strict=True)))
