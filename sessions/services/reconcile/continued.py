"""Requests that continue a history that the provider stores, and that therefore contain only new messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from compaction.dialects.openai_responses.kinds import ITEM_REFERENCE
from compaction.identity import history_digest
from compaction.messages import Role
from redaction import Redaction
from sessions.models import AgentSession, ClientHistory, Message, Turn, TurnSource
from sessions.selectors.transcripts.rows import messages_load
from sessions.services.reconcile.reading import Reading, history_read
from sessions.services.reconcile.stored import is_current, positions, stored_hashes
from sessions.services.reconcile.values import Continued, UnknownResponse
from sessions.store.bodies import json_value

#: Requests without these bytes contain no reference to a stored item.
REFERENCES = b'"item_reference"'

#: Maximum number of sessions that are searched for the items of references.
_RECENT = 20


def session_of_response(*, project_id: UUID, caller: bytes, response_id: str) -> AgentSession | None:
    """Return the session whose client got a response, or None. `caller` is the partition of the client."""
    if not response_id:
        return None
    rows = Turn.objects.filter(response_id=response_id, session__project_id=project_id, billed=True)
    histories = ClientHistory.objects.filter(session__in=rows.values("session"), caller=caller)
    found = histories.select_related("root").first()
    return found.root if found is not None else None


def session_of_references(
    *, project_id: UUID, caller: bytes, body: bytes, redaction: Redaction
) -> AgentSession | None:
    """Return the recent session whose history the body repeats with references to its items, or None.

    Raises `BadJson` or `InvalidHistory`.
    """
    reading = history_read(body, redaction=redaction)
    rows = ClientHistory.objects.filter(caller=caller, session__project_id=project_id, count__gt=0)
    for row in rows.select_related("root", "session").order_by("-updated_at")[:_RECENT]:
        resolved = references_resolved([row], reading)
        if resolved is not reading and resolved.digest_at(row.count) == bytes(row.digest):
            return row.root
    return None


def history_continued(histories: Sequence[ClientHistory], continued: Continued, reading: Reading) -> Reading:
    """Return the reading of a request, with the stored messages that precede its own.

    These end with the response that it continues, or else with the most recent one. The caller has locked the
    session of the histories. Raises `UnknownResponse`.
    """
    turn = _turn_of(histories, continued)
    if turn is None and continued.must_be_stored:
        raise UnknownResponse(continued.response_id)
    base = next((each for each in histories if turn and each.pk == turn.session_id), histories[0])
    at = positions(base, base.session.message_count)
    count = len(at)
    if turn is not None:
        end = _response_end(turn)
        count = sum(position < end for position in at)
    if count == base.count and is_current(base, base.session.message_count):
        digest = bytes(base.digest)
    else:
        digest = history_digest(stored_hashes(base, reading).hashes[:count])
    return replace(reading, first=count, base=base, before=digest, is_continued=True)


def references_resolved(histories: Sequence[ClientHistory], reading: Reading) -> Reading:
    """Return the reading with the stored items to which the client only refers by their ids.

    Reads the most recent history. References to items that are not stored remain unchanged.
    """
    wanted = {value["id"] for value in reading.values if _is_reference(value)}
    if not wanted:
        return reading
    session, found = histories[0].session, dict[str, tuple[bytes, Any]]()
    for row in messages_load(session.pk, [(0, session.message_count)]):
        item = json_value(row.data)
        if isinstance(item, dict) and item.get("id") in wanted:
            found[item["id"]] = row.data, item
    values, elements = list(reading.values), list(reading.elements)
    if not found:
        return reading
    for index, value in enumerate(reading.values):
        if _is_reference(value) and value["id"] in found:
            elements[index], values[index] = found[value["id"]]
    return replace(reading, values=values, elements=elements)


def _is_reference(value: Any) -> bool:
    is_reference = isinstance(value, dict) and value.get("type") == ITEM_REFERENCE
    return is_reference and isinstance(value.get("id"), str)


def _response_end(turn: Turn) -> int:
    """Return the position after the response of a turn. A pushed turn may also have what follows it."""
    rows = Message.objects.filter(session=turn.session_id, turn_index=turn.index, role=Role.ASSISTANT.value)
    last = rows.order_by("-position").values_list("position", flat=True).first()
    if turn.source == TurnSource.PUSH and last is not None:
        return last + 1
    return turn.first_position + turn.message_count


def _turn_of(histories: Sequence[ClientHistory], continued: Continued) -> Turn | None:
    """Return the turn with the response that a request continues, or None if it is not stored."""
    if not continued.response_id:
        return None
    rows = Turn.objects.filter(session__in=[each.pk for each in histories], message_count__gt=0)
    return rows.filter(response_id=continued.response_id).first()
