"""The stored side of a client's history: its positions in the session, and the hashes of its messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import LiteralString, NamedTuple

from psycopg.types.json import Jsonb
from psycopg.types.numeric import Int4

from compaction.identity import message_hashes
from compaction.messages import Role
from redaction import redact_bytes
from sessions.models import AgentSession, ClientHistory
from sessions.selectors.transcripts.rows import messages_load
from sessions.services.reconcile.reading import Reading
from sessions.store import bodies
from sessions.store.postgres import execute, rows_fetch

_HASHES: LiteralString = """
SELECT position, content_hash, role FROM agent_sessions_message
 WHERE session_id = %s AND position >= %s ORDER BY position
"""

_WRITE_HASHES: LiteralString = """
UPDATE agent_sessions_message m SET content_hash = h.hash
  FROM unnest(%s::int[], %b::bytea[]) AS h (position, hash)
 WHERE m.session_id = %s AND m.position = h.position
"""


#: A plain statement, because Django takes 0.5 ms to build it.
_UPDATE: LiteralString = """
UPDATE agent_sessions_clienthistory
   SET root_id = %s, spans = %s, count = %s, digest = %b, prefix_count = %s, prefix_bytes = %s,
       prefix_hash = %b, prefix_digest = %b, preamble_hash = %b, caller = %b,
       conversation = %s, updated_at = %s
 WHERE session_id = %s
"""


def positions(history: ClientHistory, message_count: int) -> list[int]:
    """Return the position of each message of the client's history in its session."""
    return span_positions(history.spans, message_count)


def span_positions(spans: Sequence[Sequence[int | None]], end: int) -> list[int]:
    """Return the positions in spans. A span without an end reaches up to `end`."""
    return [
        position for first, last in spans for position in range(first or 0, end if last is None else last)
    ]


def is_current(history: ClientHistory, message_count: int) -> bool:
    """Return whether nothing was pushed since the last reconciliation. Takes constant time."""
    spans = history.spans
    return bool(history.count == sum((message_count if end is None else end) - first for first, end in spans))


class StoredHashes(NamedTuple):
    """The hash of each message of a client's history, and how many of the last ones the model wrote."""

    hashes: list[bytes]
    answers: int


def stored_hashes(history: ClientHistory, reading: Reading) -> StoredHashes:
    """Return the hash of each message of the client's history. The caller has locked the session or its root.

    A message that was pushed without a hash gets one: that of the corresponding sent message if they are
    equal after redaction, else a hash of the stored message. If the session is a fork that has just been
    deleted, the hashes are empty, and equal no other.
    """
    session = history.session
    at = positions(history, session.message_count)
    rows = rows_fetch(_HASHES, [session.pk, Int4(at[0] if at else 0)])
    if not rows:
        return StoredHashes([b""] * len(at), answers=0)
    known: dict[int, bytes | None] = {position: content_hash for position, content_hash, _ in rows}
    roles = {position: role for position, _, role in rows}
    missing = [position for position in at if known.get(position) is None]
    if missing:
        computed = _computed(session, at, missing, reading)
        hashes_write(session, computed)
        known |= computed
    answers = takewhile(lambda position: roles[position] == Role.ASSISTANT.value, reversed(at))
    return StoredHashes([bytes(known[position] or b"") for position in at], answers=len(list(answers)))


def hashes_write(session: AgentSession, hashes: Mapping[int, bytes]) -> None:
    """Set the hashes of messages by position."""
    if hashes:
        parameters = [list(map(Int4, hashes)), list(hashes.values()), session.pk]
        execute(_WRITE_HASHES, parameters)


def _computed(
    session: AgentSession, at: Sequence[int], missing: Sequence[int], reading: Reading
) -> dict[int, bytes]:
    index_of = {position: index for index, position in enumerate(at)}
    found = {}
    for row in messages_load(session.pk, [(position, position + 1) for position in missing]):
        index = index_of[row.position]
        [own] = message_hashes([bodies.json_value(row.data)], key=reading.redaction.key, after=index)
        candidate = index - reading.first
        if 0 <= candidate < len(reading.values):
            clean, findings = redact_bytes(reading.elements[candidate], redaction=reading.redaction)
            [redacted] = message_hashes([bodies.json_value(clean)], key=reading.redaction.key, after=index)
            own = reading.hashes[candidate] if findings and redacted == own else own
        found[row.position] = own
    return found


def history_save(history: ClientHistory) -> None:
    """Insert or update a history."""
    if history._state.adding:
        history.save()
        return
    values = [
        history.root_id,
        Jsonb(history.spans),
        Int4(history.count),
        history.digest,
        Int4(history.prefix_count),
        Int4(history.prefix_bytes),
        history.prefix_hash,
        history.prefix_digest,
        history.preamble_hash,
        history.caller,
        history.conversation,
        history.updated_at,
        history.pk,
    ]
    execute(_UPDATE, values)
