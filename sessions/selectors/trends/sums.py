"""Sums of a span of days in the viewer's zone, by bucket and group.

Read from `UsageRollup` by the index on project and time; agent, tags and member come from the session. A
session with several tags counts in the group of each, so sums over tags are not the total.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any
from uuid import UUID

from django.db import connection

from sessions.models import AgentSession, UsageRollup
from sessions.selectors.usage import Span

BUCKETS = ("day", "week", "month")

#: How a group is named in SQL; "" where the session says nothing.
_KEYS = {
    "agent": "s.agent",
    "model": "coalesce(nullif(r.model, ''), s.model)",
    "tag": "coalesce(tag, '')",
    "member": "coalesce(s.created_by_id::text, '')",
    "session": "s.id::text",
}
GROUPS = tuple(_KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendQuery:
    """A span of days and what narrows it; empty fields narrow nothing. `member` is the id of a user."""

    span: Span
    agent: str = ""
    model: str = ""
    tag: str = ""
    member: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Tokens are what was billed; money is in micro-dollars. `hidden` and `saved`: see `UsageRollup`."""

    turns: int = 0
    unpriced_turns: int = 0
    uncached_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int = 0
    hidden_tokens: int = 0
    saved_microusd: int = 0

    @property
    def input_tokens(self) -> int:
        return self.uncached_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def unshrunk_tokens(self) -> int:
        """What the calls would have read without edits."""
        return self.input_tokens + self.hidden_tokens

    def __add__(self, other: Sums) -> Sums:
        return Sums(**{name: getattr(self, name) + getattr(other, name) for name in _SUMMED})


_SUMMED = tuple(field.name for field in fields(Sums))
_INNER = ", ".join(f"sum({name}) AS {name}" for name in _SUMMED)
_SUMS = ", ".join(f"sum(r.{name})::bigint" for name in _SUMMED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """`bucket` is the first day of the day, week or month; `key` names the group."""

    bucket: date
    key: str
    sums: Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class TopSession:
    id: UUID
    title: str
    agent: str
    sums: Sums


def trend_rows(*, project_id: UUID, wanted: TrendQuery, bucket: str, group: str) -> list[TrendRow]:
    """By bucket and group, in no order. One query."""
    rows = _rows(f"r.bucket, {_KEYS[group]}", project_id, wanted, tags=group == "tag", bucket=bucket)
    return [TrendRow(bucket=row[0], key=row[1], sums=_sums(row[2:])) for row in rows]


def trend_groups(*, project_id: UUID, wanted: TrendQuery, group: str) -> dict[str, Sums]:
    """The sums of the whole span by group. One query."""
    rows = _rows(_KEYS[group], project_id, wanted, tags=group == "tag")
    return {row[0]: _sums(row[1:]) for row in rows}


def trend_total(*, project_id: UUID, wanted: TrendQuery) -> Sums:
    rows = _rows("1", project_id, wanted)
    return _sums(rows[0][1:]) if rows else Sums()


def top_sessions(*, project_id: UUID, wanted: TrendQuery, limit: int = 10) -> list[TopSession]:
    """Those that cost something, the dearest first. One query."""
    keys = "s.id, s.title, s.external_id, s.agent"
    order = "HAVING sum(r.cost_microusd) > 0 ORDER BY sum(r.cost_microusd) DESC, s.id"
    rows = _rows(keys, project_id, wanted, tail=f"{order} LIMIT {int(limit)}")
    return [TopSession(id=row[0], title=row[1] or row[2], agent=row[3], sums=_sums(row[4:])) for row in rows]


def _rows(
    keys: str, project_id: UUID, wanted: TrendQuery, *, tags: bool = False, bucket: str = "", tail: str = ""
) -> list[Sequence[Any]]:
    """Summed by session first: there are far fewer of them than quarters, and the rest is joined to those."""
    assert bucket in {"", *BUCKETS}
    # A quarter lies in one day of the zone as a whole.
    begins = f"date_trunc('{bucket}', at AT TIME ZONE %(zone)s)::date" if bucket else "NULL::date"
    unnested = "LEFT JOIN LATERAL unnest(s.tags) AS tag ON true" if tags else ""
    # Every piece is a name written in this file.
    sql = f"""
        SELECT {keys}, {_SUMS}
          FROM (SELECT session_id, model, {begins} AS bucket, {_INNER}
                  FROM {UsageRollup._meta.db_table}
                 WHERE project_id = %(project)s AND at >= %(start)s AND at < %(end)s
                 GROUP BY 1, 2, 3) r
          JOIN {AgentSession._meta.db_table} s ON s.id = r.session_id
          {unnested}
         WHERE true{filter_conditions(wanted, model=_KEYS["model"])}
         GROUP BY {keys} {tail}
    """  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, query_parameters(project_id, wanted))
        found: list[Sequence[Any]] = cursor.fetchall()
    return found


def filter_conditions(wanted: TrendQuery, *, model: str) -> str:
    """The conditions of what narrows; `model` is the SQL of the model's name."""
    conditions = {
        "agent": "s.agent = %(agent)s",
        "model": f"{model} = %(model)s",
        "tag": "s.tags @> ARRAY[%(tag)s]::varchar[]",
        "member": "s.created_by_id = %(member)s",
    }
    return "".join(f" AND {sql}" for name, sql in conditions.items() if getattr(wanted, name))


def query_parameters(project_id: UUID, wanted: TrendQuery) -> dict[str, Any]:
    start, end = wanted.span.bounds()
    return {
        "project": project_id,
        "zone": wanted.span.zone.key,
        "start": start,
        "end": end,
        "agent": wanted.agent,
        "model": wanted.model,
        "tag": wanted.tag,
        "member": wanted.member,
    }


def _sums(values: Sequence[int]) -> Sums:
    return Sums(**dict(zip(_SUMMED, values, strict=True)))
