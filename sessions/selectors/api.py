"""Reads of the API that are lists: sessions and turns, by keyset."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.db.models import Q

from sessions.convert import message_bytes
from sessions.models import AgentSession, Message, Turn
from sessions.selectors.filters import Cursor, behind

#: What a list tells of a session.
_LISTED = (
    "id",
    "external_id",
    "title",
    "agent",
    "model",
    "format",
    "origin",
    "tags",
    "metadata",
    "policy",
    "parent_id",
    "created_at",
    "last_active_at",
    "turn_count",
    "message_count",
    "compaction_count",
    "shown_components",
    "context_components",
    "budget_tokens",
    "context_window",
    "calibration",
    "last_prompt_tokens",
    "peak_prompt_tokens",
    "uncached_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "cost_microusd",
    "unpriced_turns",
)


def sessions_page(
    *,
    project_id: UUID,
    limit: int,
    q: str = "",
    agent: str = "",
    model: str = "",
    tag: str = "",
    metadata: dict[str, Any] | None = None,
    active_from: datetime | None = None,
    active_to: datetime | None = None,
    min_peak_tokens: int = 0,
    health: Sequence[str] = (),
    after: tuple[datetime, UUID] | None = None,
) -> list[Any]:
    """Sessions with what a list tells of them, newest activity first; `after` is the page before's last row.

    A session matches a span of time if its own, from start to last activity, overlaps it.
    """
    rows = AgentSession.objects.filter(project_id=project_id)
    exact = {"agent": agent, "model": model}
    rows = rows.filter(**{name: value for name, value in exact.items() if value})
    if q:
        rows = rows.filter(Q(title__icontains=q) | Q(external_id__icontains=q))
    if tag:
        rows = rows.filter(tags__contains=[tag])
    if metadata:
        rows = rows.filter(metadata__contains=metadata)
    if active_from:
        rows = rows.filter(last_active_at__gte=active_from)
    if active_to:
        rows = rows.filter(started_at__lte=active_to)
    if min_peak_tokens:
        rows = rows.filter(peak_prompt_tokens__gte=min_peak_tokens)
    if health:
        rows = rows.filter(profile__grade__in=health)
    cursor = Cursor(at=after[0], id=after[1]) if after is not None else None
    # Rows and no models: making fifty models takes as long as reading them.
    return list(behind(rows, cursor).values_list(*_LISTED, named=True)[:limit])


def turns_page(*, session_id: UUID, first: int, limit: int) -> list[Turn]:
    """Turns from index `first` on."""
    rows = Turn.objects.filter(session_id=session_id, index__gte=first).order_by("index")
    return list(rows[:limit])


def turn_messages(*, session_id: UUID, turns: Sequence[Turn]) -> dict[int, list[orjson.Fragment]]:
    """The messages of consecutive turns as they were pushed, by turn."""
    if not turns:
        return {}
    end = turns[-1].first_position + turns[-1].message_count
    rows = Message.objects.filter(
        session_id=session_id, position__gte=turns[0].first_position, position__lt=end
    ).select_related("blob")
    found: dict[int, list[orjson.Fragment]] = {}
    for row in rows.order_by("position"):
        found.setdefault(row.turn_index, []).append(orjson.Fragment(message_bytes(row)))
    return found
