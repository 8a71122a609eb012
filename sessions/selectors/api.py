"""Lists for the API: sessions and turns, with keyset pagination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson

from sessions.models import AgentSession, Message, Turn
from sessions.selectors.convert import message_bytes
from sessions.selectors.filters import Cursor, SessionFilter, filtered, page_after

#: The columns that a list shows of a session.
_COLUMNS = (
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
    *, project_id: UUID, filters: SessionFilter, limit: int, after: Cursor | None = None
) -> list[Any]:
    """Return one page of sessions, most recently active first, as named tuples.

    `after` is the last row of the previous page.
    """
    rows = filtered(AgentSession.objects.filter(project_id=project_id), filters, project_id=project_id)
    # Named tuples instead of models: creating fifty models takes as long as reading the rows.
    return list(page_after(rows, after).values_list(*_COLUMNS, named=True)[:limit])


def turns_page(*, session_id: UUID, first: int, limit: int) -> list[Turn]:
    """Return turns in order, starting at index `first`."""
    rows = Turn.objects.filter(session_id=session_id, index__gte=first).order_by("index")
    return list(rows[:limit])


def turn_messages(*, session_id: UUID, turns: Sequence[Turn]) -> dict[int, list[orjson.Fragment]]:
    """Return the messages of consecutive turns as pushed, by turn index."""
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
