"""Usage in a period by bucket (day, week or month) and group.

Reads `UsageRollup` and `DailyUsage` by the index on project and time; agent, tags and member come from the
session. A session with several tags counts toward each of them, so the sum over tags is not the total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Min, OuterRef, Subquery

from accounts.models import Project
from sessions.models import AgentSession, SampleLoad, UsageRollup
from sessions.selectors.days import BUCKETS, Span
from sessions.selectors.trends.groups import GROUP_KEYS, SEPARATOR, group_key, group_names, tags_join
from sessions.selectors.trends.rows import usage_rows, whole_days


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendQuery:
    """A period and its filters. Empty filters are ignored. `member` is the id of a user.

    `sample` is "exclude" to leave out the sample data.
    """

    span: Span
    agent: str = ""
    model: str = ""
    tag: str = ""
    member: int | None = None
    sample: str = ""

    @property
    def filters(self) -> dict[str, str]:
        """The active filters by name."""
        names = ("agent", "model", "tag", "member", "sample")
        return {name: str(value) for name in names if (value := getattr(self, name))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Billed tokens, and cost in micro-dollars. See `UsageSums` for the last three fields."""

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
        return Sums(**{name: getattr(self, name) + getattr(other, name) for name in SUMMED})


SUMMED = tuple(field.name for field in fields(Sums))
SUMS = ", ".join(f"sum(r.{name})::bigint" for name in SUMMED)
_ROW_TOKENS = "r.uncached_tokens + r.cache_read_tokens + r.cache_write_tokens + r.output_tokens"
_TOKENS = f"sum({_ROW_TOKENS})::bigint"

#: What the chart can show, as SQL expressions.
MEASURES: Mapping[str, str] = {
    "cost": "sum(r.cost_microusd)::bigint",
    "tokens": _TOKENS,
    "saved": "sum(r.saved_microusd)::bigint",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """Usage of one group in one bucket, which is identified by its first day."""

    bucket: date
    key: str
    sums: Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendGroups:
    """The largest groups by cost, then tokens, the largest first. `count` includes those left out."""

    largest: Mapping[str, Sums]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSums:
    """Usage of one model, from stored sums with a price of all or some calls (`is_priced`), or of none."""

    model: str
    is_priced: bool
    sums: Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class TopSession:
    """One of the most expensive sessions."""

    id: UUID
    title: str
    agent: str
    turns: int
    cost_microusd: int


def trend_rows(*, project_id: UUID, query: TrendQuery, bucket: str, group: str) -> list[TrendRow]:
    """Return usage by bucket and group, unordered. One query."""
    rows = _rows(["r.bucket", group_key(group)], SUMS, project_id, query, group=group, bucket=bucket)
    return [TrendRow(bucket=day, key=key, sums=sums_of(sums)) for day, key, *sums in rows]


def trend_values(
    *, project_id: UUID, query: TrendQuery, bucket: str, group: str, measure: str
) -> list[tuple[date, str, int]]:
    """Return one of `MEASURES` by bucket and group, unordered, without zeros. One query."""
    value = MEASURES[measure]
    keys, tail = ["r.bucket", group_key(group)], f"HAVING {value} > 0"
    return _rows(keys, value, project_id, query, group=group, bucket=bucket, tail=tail)


def trend_groups(*, project_id: UUID, query: TrendQuery, group: str, limit: int) -> TrendGroups:
    """Return usage of the whole period by group. One query."""
    key = group_key(group)
    tail = f'ORDER BY sum(r.cost_microusd) DESC, {_TOKENS} DESC, {key} COLLATE "C" LIMIT {int(limit)}'
    rows = _rows([key], f"count(*) OVER (), {SUMS}", project_id, query, group=group, tail=tail)
    largest = {key: sums_of(sums) for key, _, *sums in rows}
    return TrendGroups(largest=largest, count=rows[0][1] if rows else 0)


def trend_sums(*, project_id: UUID, query: TrendQuery, group: str, keys: Sequence[str]) -> dict[str, Sums]:
    """Return usage of the whole period by group, of the groups with these keys. One query."""
    names, sessions = group_names(group), None
    if "session" in names:
        at = names.index("session")
        sessions = [UUID(key.split(SEPARATOR)[at]) for key in keys]
    rows = _rows([group_key(group)], SUMS, project_id, query, group=group, sessions=sessions)
    wanted = set(keys)
    return {key: sums_of(sums) for key, *sums in rows if key in wanted}


def trend_models(*, project_id: UUID, query: TrendQuery) -> list[ModelSums]:
    """Return usage of the whole period by model, with and without price and tokens. One query."""
    keys = [GROUP_KEYS["model"], "r.unpriced_turns = 0 OR r.cost_microusd > 0", f"{_ROW_TOKENS} > 0"]
    rows = _rows(keys, SUMS, project_id, query, group="model")
    return [ModelSums(model=model, is_priced=priced, sums=sums_of(sums)) for model, priced, _, *sums in rows]


def trend_total(*, project_id: UUID, query: TrendQuery) -> Sums:
    """Return usage of the whole period. One query."""
    rows = _rows(["1"], SUMS, project_id, query)
    return next((sums_of(sums) for _, *sums in rows), Sums())


def costs_by_day(*, project_id: UUID, query: TrendQuery) -> dict[date, int]:
    """Return the cost of each day with usage, in micro-dollars. One query."""
    return dict(_rows(["r.bucket"], MEASURES["cost"], project_id, query, bucket="day"))


def first_usage(*, projects: Sequence[UUID]) -> datetime | None:
    """Return the quarter-hour of the first usage of any of the projects. One query."""
    first = UsageRollup.objects.filter(project=OuterRef("pk")).order_by("at").values("at")[:1]
    found = Project.objects.filter(pk__in=projects).aggregate(at=Min(Subquery(first)))
    at: datetime | None = found["at"]
    return at


def top_sessions(*, project_id: UUID, query: TrendQuery) -> list[TopSession]:
    """Return the ten most expensive sessions with a cost. Two queries."""
    cost = MEASURES["cost"]
    tail = f"HAVING {cost} > 0 ORDER BY {cost} DESC, r.session_id LIMIT 10"
    rows = _rows(["r.session_id"], f"sum(r.turns)::bigint, {cost}", project_id, query, tail=tail)
    sessions = AgentSession.objects.only("title", "external_id", "agent").in_bulk([id for id, *_ in rows])
    return [
        TopSession(
            id=id, title=str(sessions[id]), agent=sessions[id].agent, turns=turns, cost_microusd=microusd
        )
        for id, turns, microusd in rows
        if id in sessions
    ]


def _rows(
    keys: Sequence[str],
    sums: str,
    project_id: UUID,
    query: TrendQuery,
    *,
    group: str = "",
    bucket: str = "",
    tail: str = "",
    sessions: Sequence[UUID] | None = None,
) -> list[Any]:
    """Run the query."""
    assert bucket in {"", *BUCKETS}
    # No quarter-hour spans two days in any time zone.
    begins = f"date_trunc('{bucket}', r.at AT TIME ZONE %(zone)s)::date" if bucket else "NULL::date"
    keys = [begins if key == "r.bucket" else key for key in keys]
    conditions = filter_conditions(query, model=GROUP_KEYS["model"])
    if sessions is not None:
        conditions += " AND r.session_id = ANY(%(sessions)s)"
    # Every interpolated value is a constant of this module.
    sql = f"""
        SELECT {", ".join(keys)}, {sums}
          FROM ({usage_rows(SUMMED)}) r
          {session_joins(query, group)}
         WHERE true{conditions}
         GROUP BY {", ".join(map(str, range(1, len(keys) + 1)))} {tail}
    """  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(
            sql,
            {
                **query_parameters(query),
                "project": project_id,
                **whole_days(query.span, bucket),
                "sessions": list(sessions or ()),
            },
        )
        return list(cursor.fetchall())


def session_joins(query: TrendQuery, group: str) -> str:
    """Return the joins of a row `r` to its session `s` and each `tag`, as a group or a filter needs them."""
    if query.filters or {*group_names(group)} - {"", "session"}:
        return f"JOIN {AgentSession._meta.db_table} s ON s.id = r.session_id {tags_join(group)}"
    return ""


def filter_conditions(query: TrendQuery, *, model: str) -> str:
    """Return the SQL conditions of the filters. `model` is the SQL expression of the model's name."""
    conditions = {
        "agent": "s.agent = %(agent)s",
        "model": f"{model} = %(model)s",
        "tag": "s.tags @> ARRAY[%(tag)s]::varchar[]",
        "member": "s.created_by_id = %(member)s",
        "sample": f"s.id NOT IN (SELECT unnest(sessions) FROM {SampleLoad._meta.db_table})",  # noqa: S608
    }
    return "".join(f" AND {conditions[name]}" for name in query.filters)


def query_parameters(query: TrendQuery) -> dict[str, Any]:
    """Return the parameters of the SQL statements, without the project."""
    start, end = query.span.bounds()
    return {
        "zone": query.span.zone.key,
        "start": start,
        "end": end,
        "agent": query.agent,
        "model": query.model,
        "tag": query.tag,
        "member": query.member,
    }


def sums_of(values: Sequence[int]) -> Sums:
    """Return the sums in a row with the columns `SUMS`."""
    return Sums(**dict(zip(SUMMED, values, strict=True)))
