"""Filters, orders and cursors of session lists."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any
from uuid import UUID

from django.db.models import F, Func, Q, QuerySet, TextField, Value

from search.keys import project_salt, term_key
from search.query import query_parse
from sessions.models import AgentSession, SearchSegment
from sessions.selectors.lists.prefixes import sessions_with_prefix

#: A typed value that is also a number, a boolean or null in JSON.
_LITERAL = re.compile(r"true|false|null|-?(?:0|[1-9]\d{0,14})(?:\.\d{1,9})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A minimum or maximum of a column. The column `billed` is the sum of all billed tokens."""

    column: str
    value: int
    at_most: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Conditions, all of which a session must meet. Fields with their default value are ignored.

    Each word of `text` must occur in title, external id, agent, model, tags or messages.

    `active_from` and `active_to`, both inclusive, select sessions that were active at any time in between.
    `metadata` maps top-level keys to values. `metadata_terms` are typed pairs of a key and a value: `12` and
    `true` also match a number and a boolean. `minimum_peak` is in tokens. `grades` are health grades: a
    session whose health is not calculated yet has none. `ids` selects sessions themselves, `starred_by` those
    that the user with this key has starred.
    """

    text: str = ""
    agent: str = ""
    model: str = ""
    compacted: bool | None = None
    metadata: Mapping[str, Any] | None = None
    active_from: datetime | None = None
    active_to: datetime | None = None
    minimum_peak: int | None = None
    sub_agents: bool = False
    tags: tuple[str, ...] = ()
    grades: frozenset[str] = frozenset()
    bounds: tuple[Bound, ...] = ()
    metadata_terms: tuple[tuple[str, str], ...] = ()
    ids: tuple[UUID, ...] = ()
    starred_by: int | None = None

    @property
    def is_set(self) -> bool:
        return self != SessionFilter()


def first_moment(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time.min, zone)


def last_moment(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time.max, zone)


#: The column of each order. Lists begin with the largest or newest value.
ORDERS: Mapping[str, str] = {
    "activity": "last_active_at",
    "turns": "turn_count",
    "last": "last_prompt_tokens",
    "peak": "peak_prompt_tokens",
    "cost": "cost_microusd",
}
NEWEST = "activity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The last row of a page, after which the next page begins.

    `at` is the row's value in the column by which the list is ordered. Ties are ordered by id.
    """

    at: datetime | int
    id: UUID

    def encode(self) -> str:
        at = self.at.isoformat() if isinstance(self.at, datetime) else self.at
        return base64.urlsafe_b64encode(f"{at} {self.id}".encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str, order: str = NEWEST) -> Cursor | None:
        """Decode a cursor of a list in one of `ORDERS`. Return None if `text` is not one."""
        try:
            at, _, id = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition(" ")
            if order != NEWEST:
                return cls(at=min(int(at), 2**63 - 1), id=UUID(id))
            moment = datetime.fromisoformat(at)
            return cls(at=moment if moment.tzinfo else moment.replace(tzinfo=UTC), id=UUID(id))
        except (ValueError, binascii.Error):
            return None


def sessions_filtered(filters: SessionFilter, *, project_id: UUID) -> QuerySet[AgentSession]:
    """Return the sessions of the project that match `filters`."""
    lookups = {
        "agent": filters.agent,
        "model": filters.model,
        "tags__contains": filters.tags,
        "metadata__contains": filters.metadata,
        "pk__in": filters.ids,
        "stars__user": filters.starred_by,
        "profile__grade__in": filters.grades,
        "peak_prompt_tokens__gte": filters.minimum_peak,
        "last_active_at__gte": filters.active_from,
        "started_at__lte": filters.active_to,
    }
    rows = AgentSession.objects.filter(project_id=project_id)
    rows = rows.filter(**{lookup: value for lookup, value in lookups.items() if value})
    for key, value in filters.metadata_terms:
        rows = rows.filter(_metadata_term(key, value))
    if not filters.sub_agents and not filters.text and not filters.ids:
        rows = rows.filter(parent=None)
    if filters.compacted is not None:
        # A compaction by the client moves `context_start`; those by contextapp are counted.
        was_compacted = Q(context_start__gt=0) | Q(compaction_count__gt=0)
        rows = rows.filter(was_compacted if filters.compacted else ~was_compacted)
    return _within_bounds(_with_text(rows, filters.text, project_id), filters.bounds)


def _metadata_term(key: str, text: str) -> Q:
    condition = Q(metadata__contains={key: text})
    if _LITERAL.fullmatch(text):
        condition |= Q(metadata__contains={key: json.loads(text)})
    return condition


def page_after(
    rows: QuerySet[AgentSession], cursor: Cursor | None, order: str = NEWEST
) -> QuerySet[AgentSession]:
    """Return the rows after the cursor, in one of `ORDERS`."""
    column = ORDERS[order]
    rows = rows.order_by(f"-{column}", "-id")
    if cursor is None:
        return rows
    # The second condition implies the first, which lets Postgres use the index.
    return rows.filter(**{f"{column}__lte": cursor.at}).filter(
        Q(**{f"{column}__lt": cursor.at}) | Q(id__lt=cursor.id)
    )


def _with_text(rows: QuerySet[AgentSession], text: str, project_id: UUID) -> QuerySet[AgentSession]:
    if not text:
        return rows
    # One text per session: comparing the columns one by one takes three times as long.
    tags = Func(F("tags"), Value(" "), function="array_to_string", output_field=TextField())
    columns = (F("title"), F("external_id"), F("agent"), F("model"), tags)
    names = Func(Value(" "), *columns, function="concat_ws", output_field=TextField())
    rows = rows.alias(names=names)
    words = text.split()
    for number, word in enumerate(words, 1):
        named = Q(names__icontains=word)
        mentioned = _mentions(word, project_id)
        if number == len(words) and not text.endswith(" "):  # the user may still be typing it
            mentioned |= Q(pk__in=sessions_with_prefix(project_id=project_id, word=word))
        rows = rows.filter(named | mentioned)
    return rows


def _mentions(word: str, project_id: UUID) -> Q:
    """Match sessions with messages that contain a word, as the search understands it."""
    salt, groups = project_salt(project_id), query_parse(word).groups
    keys = [term_key(salt, term.term) for group in groups for term in group.exact]
    if not keys:
        return Q()
    segments = SearchSegment.objects.filter(project_id=project_id, keys__contains=keys)
    return Q(pk__in=segments.values("session_id"))


def _within_bounds(rows: QuerySet[AgentSession], bounds: Sequence[Bound]) -> QuerySet[AgentSession]:
    if any(bound.column == "billed" for bound in bounds):
        parts = F("uncached_tokens") + F("cache_read_tokens") + F("cache_write_tokens") + F("output_tokens")
        rows = rows.annotate(billed=parts)
    for bound in bounds:
        rows = rows.filter(**{f"{bound.column}__{'lte' if bound.at_most else 'gte'}": bound.value})
    return rows
