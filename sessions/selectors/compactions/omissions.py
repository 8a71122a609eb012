"""Find the messages that a client sent only once: it left them out of its later requests.

Some clients add messages to each request, such as the current time. Prompts of later turns do not contain
them, although no compaction has removed them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from django.db.models import Q
from psycopg.types.numeric import Int4

from sessions.store.postgres import rows_fetch

#: The last turn whose prompt contains the omitted message `m`, as `omitted.turn`. The prompt of a turn ends
#: before its answer, and the turn may contain nothing else.
LAST_TURN: LiteralString = """
 CROSS JOIN LATERAL (
       SELECT coalesce(
                  (SELECT t.index
                     FROM agent_sessions_turn t
                    WHERE t.session_id = m.session_id AND t.index > m.turn_index
                      AND t.first_position >= m.omitted_from + (
                          SELECT count(*) FROM agent_sessions_message a
                           WHERE a.session_id = m.session_id AND a.position = m.omitted_from
                             AND a.role = 'assistant')
                    ORDER BY t.index LIMIT 1),
                  (SELECT turn_count FROM agent_sessions_agentsession WHERE id = m.session_id)) - 1 AS turn
       ) omitted
"""

_OMISSIONS: LiteralString = f"""
SELECT m.position, m.tokens, omitted.turn
  FROM agent_sessions_message m
{LAST_TURN}
 WHERE m.session_id = %s AND m.omitted_from < %s
 ORDER BY m.position
"""  # noqa: S608  a constant is inserted


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """A message that the prompts after `turn` do not contain, because the client left it out."""

    position: int
    tokens: int
    turn: int


def not_omitted(end: int) -> Q:
    """Select the messages that the client had not left out of a prompt that ends before position `end`."""
    return Q(omitted_from=None) | Q(omitted_from__gte=end)


def omissions(session_id: UUID, *, end: int) -> Sequence[Omission]:
    """Return the messages that the client had left out of a prompt that ends before position `end`."""
    rows = rows_fetch(_OMISSIONS, [session_id, Int4(end)])
    return [Omission(position=position, tokens=tokens, turn=turn) for position, tokens, turn in rows]
