"""Runs of unchanged messages at the end of a prompt, loaded only where they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import LiteralString, overload

from django.db.models import Count, Q, Sum
from psycopg.types.numeric import Int4

from compaction.dialects import get_dialect
from compaction.messages import Message, Role
from compaction.view import Entry
from sessions.models import AgentSession
from sessions.store.postgres import rows_fetch

#: Messages that are loaded at a time.
_BATCH = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Sequence[Entry]):
    """The messages from position `first` up to `end`, without their parts. `tokens` is their sum.

    `system_tokens` are those of the system messages among them. Equal runs have the same messages: they are
    append-only.
    """

    session: AgentSession
    first: int
    end: int
    tokens: int
    system_tokens: int

    def __len__(self) -> int:
        return self.end - self.first

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            return [_entry(message) for message in self.messages(self.first + start, self.first + stop)]
        [entry] = self[index : index + 1] if index >= 0 else self[index:][:1]
        return entry

    def __iter__(self) -> Iterator[Entry]:
        for start in range(0, len(self), _BATCH):
            yield from self[start : start + _BATCH]

    def messages(self, first: int, end: int) -> list[Message]:
        """Return the messages between two positions. One query."""
        return messages_without_parts(self.session, Q(position__gte=first, position__lt=end))

    def parts(self, spans: Sequence[tuple[int, int]]) -> list[Run]:
        """Return the parts of the run between these pairs of positions. One query."""
        if not spans:
            return []
        firsts, ends = ([Int4(value) for value in column] for column in zip(*spans, strict=True))
        sums = rows_fetch(_SUMS, {"session": self.session.pk, "firsts": firsts, "ends": ends})
        return [
            Run(session=self.session, first=first, end=end, tokens=tokens, system_tokens=system)
            for (first, end), (tokens, system) in zip(spans, sums, strict=True)
        ]

    def entries_at(self, positions: Iterable[int]) -> list[Entry]:
        """Return the entries of the messages at these positions. One query."""
        found = messages_without_parts(self.session, Q(position__in=list(positions)))
        return [_entry(message) for message in found]


def run_of(session: AgentSession, *, first: int, end: int) -> Run | None:
    """Return the run between two positions, or None if messages between them are missing. One query."""
    rows = session.messages.filter(position__gte=first, position__lt=end)
    found = rows.aggregate(
        count=Count("position"),
        total=Sum("tokens", default=0),
        system=Sum("tokens", filter=Q(role=Role.SYSTEM), default=0),
    )
    if found["count"] != end - first:
        return None
    return Run(session=session, first=first, end=end, tokens=found["total"], system_tokens=found["system"])


def messages_without_parts(session: AgentSession, shown: Q) -> list[Message]:
    """Return messages in order, from small columns. One query."""
    rows = session.messages.filter(shown).order_by("position")
    format = get_dialect(session.format).name
    return [
        Message(position=position, role=Role(role), parts=(), tokens=tokens, turn=turn, format=format)
        for position, role, tokens, turn in rows.values_list("position", "role", "tokens", "turn_index")
    ]


def _entry(message: Message) -> Entry:
    return Entry(message, message.position, message.position)


_SUMS: LiteralString = """
SELECT coalesce(sum(m.tokens), 0)::bigint, coalesce(sum(m.tokens) FILTER (WHERE m.role = 'system'), 0)::bigint
  FROM unnest(%(firsts)s::int[], %(ends)s::int[]) WITH ORDINALITY AS span (first, last, number)
  LEFT JOIN agent_sessions_message m
    ON m.session_id = %(session)s AND m.position >= span.first AND m.position < span.last
 GROUP BY span.number ORDER BY span.number
"""
