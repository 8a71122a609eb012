"""The messages that a scan for references reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from compaction.messages import Message
from sessions.selectors.stored_rows import Span, StoredMessage, joined, messages_load


class ScannedMessages(Mapping[int, Message]):
    """Messages of a session by position. Each is read and parsed at most once, although a scan needs many of
    them as new messages, in the view after a compaction, and as the content that the next one removes.
    """

    def __init__(self, session_id: UUID, format: str | None) -> None:
        self._session_id, self._format = session_id, format
        self._rows: dict[int, StoredMessage] = {}
        self._values: dict[int, Message] = {}

    def read(self, spans: Iterable[Span]) -> None:
        """Read the messages in these spans, which may overlap, in one statement."""
        rows = messages_load(self._session_id, joined(spans))
        self._rows.update((row.position, row) for row in rows)

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
