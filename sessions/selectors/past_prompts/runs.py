"""Runs of unchanged messages at the end of a prompt, loaded only where they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import LiteralString, overload

from django.db.models import Q
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
        return [
            Run(session=self.session, first=first, end=end, tokens=tokens, system_tokens=system)
            for (first, end), (_, tokens, system) in zip(spans, _sums(self.session, spans), strict=True)
        ]

    def entries_at(self, positions: Iterable[int]) -> list[Entry]:
        """Return the entries of the messages at these positions. One query."""
        found = messages_without_parts(self.session, Q(position__in=list(positions)))
        return [_entry(message) for message in found]


def run_of(session: AgentSession, *, first: int, end: int) -> Run | None:
    """Return the run between two positions, or None if messages between them are missing. One query."""
    [(count, tokens, system)] = _sums(session, [(first, end)])
    if count != end - first:
        return None
    return Run(session=session, first=first, end=end, tokens=tokens, system_tokens=system)


def _sums(session: AgentSession, spans: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int, int]]:
    """Return the number of messages in each span, their tokens, and those of system messages. One query."""
    firsts, ends = ([Int4(value) for value in column] for column in zip(*spans, strict=True))
    return rows_fetch(_SUMS, {"session": session.pk, "firsts": firsts, "ends": ends})


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


# From the sums of stretches inside of each span, and the messages before and after them.
_SUMS: LiteralString = """
SELECT (stretch.messages + edge.messages)::bigint, (stretch.tokens + edge.tokens)::bigint,
       (stretch.system + edge.system)::bigint
  FROM unnest(%(firsts)s::int[], %(ends)s::int[]) WITH ORDINALITY AS span (first, last, number)
 CROSS JOIN LATERAL (
       SELECT coalesce(min(first_position), span.last) AS first,
              coalesce(max(end_position), span.last) AS last,
              coalesce(sum(message_count), 0) AS messages, coalesce(sum(message_tokens), 0) AS tokens,
              coalesce(sum(system_tokens), 0) AS system
         FROM agent_sessions_turnstretch
        WHERE session_id = %(session)s AND first_position >= span.first AND end_position <= span.last) stretch
 CROSS JOIN LATERAL (
       SELECT count(m.position) AS messages, coalesce(sum(m.tokens), 0) AS tokens,
              coalesce(sum(m.tokens) FILTER (WHERE m.role = 'system'), 0) AS system
         FROM (VALUES (span.first, stretch.first), (stretch.last, span.last)) AS part (first, last)
         JOIN agent_sessions_message m
           ON m.session_id = %(session)s AND m.position >= part.first AND m.position < part.last) edge
 ORDER BY span.number
"""
