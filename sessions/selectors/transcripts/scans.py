"""The messages that a scan for references reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Self
from uuid import UUID

from compaction.messages import Message, Role
from sessions.selectors.transcripts.rows import Span, StoredMessage, joined, messages_load


class ScannedMessages(Mapping[int, Message]):
    """Messages of a session by position, in order.

    A scan needs many of them several times: as new messages, in the view after a compaction, and as the
    content that the next one removes. Each is parsed once, when it is needed first.
    """

    def __init__(self, format: str | None, rows: Iterable[StoredMessage]) -> None:
        self._format = format
        self._rows = {row.position: row for row in rows}
        self._values: dict[int, Message] = {}

    @classmethod
    def load(cls, session_id: UUID, format: str | None, spans: Iterable[Span]) -> Self:
        """Read the messages in these spans, which may overlap. `format` is the dialect of the session."""
        return cls(format, messages_load(session_id, joined(spans)))

    def within(self, spans: Iterable[Span]) -> Self:
        """Return those of the messages that are in these spans, which must be in order."""
        rows = self._rows
        positions = (at for first, end in spans for at in range(first, end) if at in rows)
        part = type(self)(self._format, map(rows.__getitem__, positions))
        part._values = self._values
        return part

    def is_by_assistant(self, position: int) -> bool:
        """Whether the assistant wrote the message, without parsing it."""
        return self._rows[position].role == Role.ASSISTANT

    def __getitem__(self, position: int) -> Message:
        value = self._values.get(position)
        if value is None:
            value = self._values[position] = self._rows[position].value(self._format)
        return value

    def __contains__(self, position: object) -> bool:
        return position in self._rows

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
