"""The new part of a client's history as a turn."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from compaction import dialects
from compaction.histories import is_summary
from redaction import Finding
from sessions.models import ClientHistory, TurnSource
from sessions.services.ingestion import IngestedMessage, NewPreamble, messages_ingest, preamble_ingest
from sessions.services.push.values import Push
from sessions.services.reconcile.reading import Reading
from sessions.services.reconcile.values import InvalidHistory, Request, Sent
from sessions.store import bodies


def push_of(
    request: Request, sent: Sent, reading: Reading, history: ClientHistory, *, first: int, format: str | None
) -> tuple[Push, bytes]:
    """Return the messages from `first` on as a push, and the hash of the system prompt and tools.

    `format` is the dialect of the session. Raises `InvalidHistory`.
    """
    is_forwarded = sent.push.source is TurnSource.GATEWAY
    messages, found = _ingested(reading, first, format, is_accepted=is_forwarded)
    preamble, preamble_hash = _preamble(history, reading)
    push = structs.replace(
        sent.push,
        messages=messages,
        redacted=found,
        preamble=preamble,
        idempotency_key=request.idempotency_key,
        body_hash=request.body_hash if request.idempotency_key is not None else None,
        is_placed=True,
        is_stateful=request.continued is not None and is_forwarded,
    )
    if (call := request.call) is not None:
        ids = {"request_id": call.request_id or None, "response_id": call.response_id or None}
        push = structs.replace(push, **ids)
    return push, preamble_hash


def _ingested(
    reading: Reading, first: int, format: str | None, *, is_accepted: bool
) -> tuple[list[IngestedMessage], list[Finding]]:
    """Return the messages from `first` on without secrets. Raises `InvalidHistory`.

    `is_accepted` states that the provider has accepted them: it may know kinds that the dialects do not.
    """
    elements, values, hashes = reading.from_index(first)
    for index, value in enumerate(values):
        if not is_accepted and dialects.detect(value, format) is None:
            raise InvalidHistory(first + index, dialects.message_error(value))
    messages, found = messages_ingest(elements, values, format=format, redaction=reading.redaction)
    return [
        replace(message, content_hash=content_hash, is_summary=is_summary(value))
        for message, content_hash, value in zip(messages, hashes, values, strict=True)
    ], found


def preamble_hash_of(reading: Reading) -> bytes | None:
    """Return the hash of the system prompt and tools of a request, None if it has none."""
    system, tools = reading.fields.get("system"), reading.fields.get("tools")
    if system is None and tools is None:
        return None
    return bodies.content_hash(bodies.json_bytes([system, tools]))


def _preamble(history: ClientHistory, reading: Reading) -> tuple[NewPreamble | None, bytes]:
    """Return the system prompt and tools if they have changed since the last request, and their hash."""
    system, tools = reading.fields.get("system"), reading.fields.get("tools")
    found = preamble_hash_of(reading)
    if found is None:
        return None, bytes(history.preamble_hash)
    if found == bytes(history.preamble_hash):
        return None, found
    return preamble_ingest(system, tools, redaction=reading.redaction)[0], found
