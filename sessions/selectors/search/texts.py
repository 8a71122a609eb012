"""Read the messages that a search found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from psycopg.types.numeric import Int4

from search.documents import message_text_and_starts
from sessions.selectors.convert import value_of
from sessions.store.blobs import body_read
from sessions.store.postgres import rows_fetch

#: A session and a position in it.
Place = tuple[UUID, int]

_ROWS: LiteralString = """
SELECT m.session_id, m.position, m.turn_index, t.at, m.flags, s.format, coalesce(m.body, b.data),
       b.project_id, b.sha256, m.role
  FROM unnest(%(sessions)s::uuid[], %(positions)s::int[]) AS place (session_id, position)
  JOIN agent_sessions_message m USING (session_id, position)
  JOIN agent_sessions_agentsession s ON s.id = m.session_id AND s.project_id = %(project)s
  JOIN agent_sessions_turn t ON t.session_id = m.session_id AND t.index = m.turn_index
  LEFT JOIN agent_sessions_blob b ON b.id = m.blob_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMessage:
    """A message with its searchable text and the time of its turn.

    `part_starts` are the positions in the text at which the message's parts begin, with their indices.
    """

    turn: int
    at: datetime
    text: str
    part_starts: Sequence[tuple[int, int]]

    def part_at(self, position: int) -> int | None:
        """Return the index of the part that contains this position of the text."""
        return next((part for start, part in reversed(self.part_starts) if start <= position), None)


def messages_read(project_id: UUID, places: Sequence[Place]) -> Mapping[Place, FoundMessage]:
    """Return the messages at these places in the project. Missing ones are omitted."""
    parameters = {
        "project": project_id,
        "sessions": [session for session, _ in places],
        "positions": [Int4(position) for _, position in places],
    }
    rows = rows_fetch(_ROWS, parameters)
    found = {}
    for session, position, turn, at, flags, format, data, blob_project, sha256, role in rows:
        body = body_read(data, blob_project, sha256, role)
        value = value_of(body, format=format, position=position, turn=turn, tokens=0, flags=flags)
        text, starts = message_text_and_starts(value)
        found[session, position] = FoundMessage(turn=turn, at=at, text=text, part_starts=starts)
    return found
