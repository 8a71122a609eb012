"""Read the messages to index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from compaction.messages import Message
from search.documents import document_of
from search.segments import MOST_MESSAGES, Document
from sessions.models import AgentSession
from sessions.selectors.stored_rows import messages_load
from sessions.store.flags import MessageFlag

#: Maximum distance between an output and its call. Outputs of parallel calls follow each other.
_CALLS_BEFORE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedMessages:
    """The next messages of a session to index, from `first` up to, not including, `end`."""

    project_id: UUID
    session_id: UUID
    first: int
    end: int
    last_turn: int
    messages: Sequence[Message]
    documents: Sequence[Document]

    @property
    def is_last(self) -> bool:
        """Whether no message followed them when they were read."""
        return len(self.documents) < MOST_MESSAGES


def messages_to_index(*, session_id: UUID, position: int) -> IndexedMessages | None:
    """Return the messages from `position` on, as many as fit into a segment, or None if there are none."""
    session = AgentSession.objects.filter(pk=session_id).only("project_id", "format").first()
    if session is None:
        return None
    rows = messages_load(session_id, [(max(position - _CALLS_BEFORE, 0), position + MOST_MESSAGES)])
    values = [row.value(session.format) for row in rows]
    names = {call.call_id: call.name for value in values for call in value.tool_calls}
    new = [(row, value) for row, value in zip(rows, values, strict=True) if row.position >= position]
    if not new:
        return None
    return IndexedMessages(
        project_id=session.project_id,
        session_id=session_id,
        first=position,
        end=new[-1][0].position + 1,
        last_turn=new[-1][0].turn,
        messages=[value for _, value in new],
        documents=[
            document_of(value, names, is_error=bool(row.flags & MessageFlag.ERROR)) for row, value in new
        ],
    )
