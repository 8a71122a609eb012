"""What the list of sessions can be narrowed by, and where a page of it begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any
from uuid import UUID

from django.db.models import F, Func, Q, QuerySet, TextField, Value

from sessions.models import AgentSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A column that is to be at least `value`, or at most; `billed` is the sum of all billed tokens."""

    column: str
    value: int
    at_most: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Every field narrows; a field at its default does not.

    `text` is words that must all occur in title, id, agent, model or a tag. `active_from` and `active_to`,
    both inclusive, select sessions that were active at any time between them. `metadata` are values of keys
    at its top level. `minimum_peak` is tokens. `grades` are those of
    the profile: a session whose profile is not made yet has none.
    """

    text: str = ""
    agent: str = ""
    model: str = ""
    tag: str = ""
    compacted: bool | None = None
    metadata: Mapping[str, Any] | None = None
    active_from: datetime | None = None
    active_to: datetime | None = None
    minimum_peak: int | None = None
    sub_agents: bool = False
    tags: tuple[str, ...] = ()
    grades: frozenset[str] = frozenset()
    bounds: tuple[Bound, ...] = ()

    @property
    def is_set(self) -> bool:
        return self != SessionFilter()


def first_moment(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


def last_moment(day: date) -> datetime:
    return datetime.combine(day, time.max, UTC)


#: What a list may be ordered by, the largest or newest first: the column of each.
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
    """The last row of a page; the next begins behind it. `at` is what the row has in the column by which the
    list is ordered; rows alike in it are told apart by id."""

    at: datetime | int
    id: UUID

    def encode(self) -> str:
        at = self.at.isoformat() if isinstance(self.at, datetime) else self.at
        return base64.urlsafe_b64encode(f"{at} {self.id}".encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str, order: str = NEWEST) -> Cursor | None:
        """The cursor that `text` is in one of `ORDERS`, or None where it is none."""
        try:
            at, _, id = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition(" ")
            if order != NEWEST:
                return cls(at=min(int(at), 2**63 - 1), id=UUID(id))
            moment = datetime.fromisoformat(at)
            return cls(at=moment if moment.tzinfo else moment.replace(tzinfo=UTC), id=UUID(id))
        except (ValueError, binascii.Error):
            return None


def filtered(rows: QuerySet[AgentSession], wanted: SessionFilter) -> QuerySet[AgentSession]:
    narrowing = {
        "agent": wanted.agent,
        "model": wanted.model,
        "tags__contains": [tag for tag in (wanted.tag, *wanted.tags) if tag],
        "metadata__contains": wanted.metadata,
        "profile__grade__in": wanted.grades,
        "peak_prompt_tokens__gte": wanted.minimum_peak,
        "last_active_at__gte": wanted.active_from,
        "started_at__lte": wanted.active_to,
    }
    rows = rows.filter(**{lookup: value for lookup, value in narrowing.items() if value})
    if not wanted.sub_agents and not wanted.text:
        rows = rows.filter(parent=None)
    if wanted.compacted is not None:
        # The client's compaction moves the start of the context on; ours are counted.
        was_compacted = Q(context_start__gt=0) | Q(compaction_count__gt=0)
        rows = rows.filter(was_compacted if wanted.compacted else ~was_compacted)
    return _within_bounds(_with_text(rows, wanted.text), wanted.bounds)


def page_after(
    rows: QuerySet[AgentSession], cursor: Cursor | None, order: str = NEWEST
) -> QuerySet[AgentSession]:
    """The rows that follow the cursor, which is of the same one of `ORDERS`."""
    column = ORDERS[order]
    rows = rows.order_by(f"-{column}", "-id")
    if cursor is None:
        return rows
    # The first condition is implied by the second and lets the index find the place.
    return rows.filter(**{f"{column}__lte": cursor.at}).filter(
        Q(**{f"{column}__lt": cursor.at}) | Q(id__lt=cursor.id)
    )


def _with_text(rows: QuerySet[AgentSession], text: str) -> QuerySet[AgentSession]:
    if not text:
        return rows
    tags = Func(F("tags"), Value(" "), function="array_to_string", output_field=TextField())
    rows = rows.annotate(tags_text=tags)
    for word in text.split():
        fields = ("title", "external_id", "agent", "model", "tags_text")
        rows = rows.filter(Q.create([(f"{field}__icontains", word) for field in fields], connector=Q.OR))
    return rows


def _within_bounds(rows: QuerySet[AgentSession], bounds: Sequence[Bound]) -> QuerySet[AgentSession]:
    if any(bound.column == "billed" for bound in bounds):
        parts = F("uncached_tokens") + F("cache_read_tokens") + F("cache_write_tokens") + F("output_tokens")
        rows = rows.annotate(billed=parts)
    for bound in bounds:
        rows = rows.filter(**{f"{bound.column}__{'lte' if bound.at_most else 'gte'}": bound.value})
    return rows
