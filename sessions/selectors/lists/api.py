"""Lists for the API: sessions and turns, with keyset pagination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString
from uuid import UUID

import orjson
from psycopg.rows import namedtuple_row
from psycopg.types.numeric import Int4

from accounts.selectors import KEY_IS_VALID
from sessions.selectors.lists.filters import Cursor, SessionFilter, page_after, sessions_filtered
from sessions.store.blobs import body_read
from sessions.store.postgres import execute, rows_fetch

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


def sessions_page(*, project_id: UUID, filters: SessionFilter, limit: int, after: Cursor | None) -> list[Any]:
    """Return one page of sessions, most recently active first, as named tuples.

    `after` is the last row of the previous page.
    """
    if filters == _UNFILTERED:
        return _newest(project_id, limit, after)
    rows = sessions_filtered(filters, project_id=project_id)
    # Named tuples instead of models: creating fifty models takes as long as reading the rows.
    return list(page_after(rows, after).values_list(*_COLUMNS, named=True)[:limit])


_UNFILTERED = SessionFilter(sub_agents=True)

_NEWEST: LiteralString = f"""
SELECT {", ".join(_COLUMNS)}
  FROM agent_sessions_agentsession
 WHERE project_id = %(project)s
   AND (last_active_at, id) < (coalesce(%(at)s::timestamptz, 'infinity'), coalesce(%(id)s::uuid, %(last)s))
 ORDER BY last_active_at DESC, id DESC
 LIMIT %(limit)s
"""  # noqa: S608 (constants)

_LAST_ID = UUID(int=2**128 - 1)


def _newest(project_id: UUID, limit: int, after: Cursor | None) -> list[Any]:
    """Return a page without filters. Building a query of Django's takes as long as executing it."""
    parameters = {
        "project": project_id,
        "at": after.at if after is not None else None,
        "id": after.id if after is not None else None,
        "last": _LAST_ID,
        "limit": Int4(limit),
    }
    return rows_fetch(_NEWEST, parameters, row_factory=namedtuple_row)


_SESSION: LiteralString = f"""
SELECT s.id, s.turn_count
  FROM agent_sessions_agentsession s
  JOIN accounts_apikey k ON k.id = %(key)s AND {KEY_IS_VALID}
 WHERE s.id = %(session)s AND s.project_id = %(project)s
"""  # noqa: S608  a constant is inserted

_TURNS: LiteralString = """
SELECT index, at, source, model, first_position, message_count, prompt_estimate, prompt_reported,
       prompt_served, component_tokens, uncached_tokens, cache_read_tokens, cache_write_tokens, output_tokens,
       output_reported, cost_microusd, billed, first_token_ms, duration_ms, output_spike
  FROM agent_sessions_turn
 WHERE session_id = %s AND index >= %s
 ORDER BY index
 LIMIT %s
"""

_MESSAGES: LiteralString = """
SELECT m.turn_index, coalesce(m.body, b.data), b.project_id, b.sha256, m.role
  FROM agent_sessions_message m
  LEFT JOIN agent_sessions_blob b ON b.id = m.blob_id
 WHERE m.session_id = %s AND m.position >= %s AND m.position < %s
 ORDER BY m.position
"""


def session_turns(*, key_id: UUID, project_id: UUID, session_id: UUID) -> Any:
    """Return the id and the number of turns of a session.

    None if the session is not in the project or the API key is no longer valid.
    """
    parameters = {"key": key_id, "project": project_id, "session": session_id}
    return execute(_SESSION, parameters, row_factory=namedtuple_row).fetchone()


def turns_page(*, session_id: UUID, first: int, limit: int) -> list[Any]:
    """Return turns in order, starting at index `first`, as named tuples."""
    parameters = [session_id, Int4(first), Int4(limit)]
    return rows_fetch(_TURNS, parameters, row_factory=namedtuple_row)


def pushed_messages(*, session_id: UUID, turns: Sequence[Any]) -> dict[int, list[orjson.Fragment]]:
    """Return the messages of consecutive turns as pushed, by turn index."""
    if not turns:
        return {}
    first, end = turns[0].first_position, turns[-1].first_position + turns[-1].message_count
    rows = rows_fetch(_MESSAGES, [session_id, Int4(first), Int4(end)])
    found: dict[int, list[orjson.Fragment]] = {}
    for turn, *columns in rows:
        found.setdefault(turn, []).append(orjson.Fragment(body_read(*columns)))
    return found
