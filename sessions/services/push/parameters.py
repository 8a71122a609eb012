"""The parameters of the SQL statements of a push.

Integers get an explicit type: psycopg would choose one by their size, and the server would prepare the same
statement again for each combination of types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg.types.json import Jsonb
from psycopg.types.numeric import Int4, Int8
from uuid_utils.compat import uuid7

from compaction.messages import Message, Usage
from sessions.services.ingestion import IngestedMessage, NewPreamble
from sessions.services.push.values import NewTurn, Push, Target
from sessions.store import bodies
from sessions.store.blobs import is_external


def read_parameters(target: Target, push: Push) -> dict[str, Any]:
    """Return the parameters of `READ` and `LOCK`."""
    return {
        "key": target.key_id,
        "project": target.project_id,
        "session": target.session_id,
        "idempotency_key": push.idempotency_key,
    }


def write_parameters(turn: NewTurn, push: Push, target: Target, *, answer: bytes | None) -> dict[str, Any]:
    """Return the parameters of `WRITE`."""
    session, usage = turn.session, push.usage
    reported = usage.prompt_tokens if usage is not None else None
    return {
        "session": session.id,
        "project": session.project_id,
        "version": session.version,
        "key": target.key_id,
        "answer": answer if push.idempotency_key is not None else None,
        "turn": Int4(turn.index),
        "format": turn.format,
        "model": turn.model,
        "first": Int4(turn.first_position),
        "count": Int4(len(turn.values)),
        "preamble": Int4(turn.preamble_version),
        "preamble_hash": push.preamble.hash if push.preamble is not None else session.preamble_hash,
        "idempotency_key": push.idempotency_key,
        "body_hash": push.body_hash,
        "request_id": push.request_id,
        "response_id": push.response_id,
        "estimate": Int4(turn.prompt.total),
        "reported": _int4(reported),
        "served": Int4(turn.served.total),
        "size": Int4(reported if reported is not None else turn.served.total),
        "components": [Int4(count) for count in turn.served.counts],
        "context": Jsonb(turn.context.tokens),
        "shown": Jsonb(turn.shown.tokens),
        "open_calls": [call.replace("\0", "\ufffd") for call in turn.continuation.open_calls],
        "needs_repair": not turn.continuation.regular,
        "calibration": Jsonb(turn.calibration.to_json()),
        "factor": turn.calibration.factor,
        "overhead": Int4(turn.calibration.overhead),
        "budget": Int4(turn.budget),
        "spike": Int4(turn.spike.tokens) if turn.spike is not None else None,
        "first_token_ms": _int4(push.latency.first_token_ms),
        "duration_ms": _int4(push.latency.duration_ms),
        "cost": Int8(turn.cost_microusd) if turn.cost_microusd is not None else None,
        "unpriced": Int4(usage is not None and turn.cost_microusd is None),
        **_usage_parameters(usage),
        **_message_parameters(turn.values, push.messages),
    }


def preamble_parameters(turn: NewTurn, preamble: NewPreamble) -> dict[str, Any]:
    """Return the parameters of `WRITE_PREAMBLE`."""
    return {
        **preamble.columns,
        "session": turn.session.id,
        "version": Int4(turn.preamble_version),
        "from_turn": Int4(turn.index),
        "system_tokens": Int4(preamble.system_tokens),
        "tools_tokens": Int4(preamble.tools_tokens),
    }


def _int4(value: int | None) -> Int4 | None:
    return Int4(value) if value is not None else None


def _usage_parameters(usage: Usage | None) -> dict[str, Any]:
    if usage is None:
        return dict.fromkeys(("uncached", "cache_read", "cache_write", "output"))
    return {
        "uncached": Int4(usage.uncached_tokens),
        "cache_read": Int4(usage.cache_read_tokens),
        "cache_write": Int4(usage.cache_write_tokens),
        "output": Int4(usage.output_tokens),
    }


def _message_parameters(values: Sequence[Message], messages: Sequence[IngestedMessage]) -> dict[str, Any]:
    digests = [message.sha256 if message.is_large else None for message in messages]
    large = {digest: m.data for digest, m in zip(digests, messages, strict=True) if digest is not None}
    return {
        "positions": [Int4(value.position) for value in values],
        "roles": [value.role.value for value in values],
        "tokens": [Int4(value.tokens) for value in values],
        "flags": [Int4(message.flags) for message in messages],
        "tool_names": [message.tool_name for message in messages],
        "bodies": [
            bodies.pack(message.data) if digest is None else None
            for digest, message in zip(digests, messages, strict=True)
        ],
        "in_blob": digests,
        "content_hashes": [message.content_hash for message in messages],
        "blob_ids": [uuid7() for _ in large],
        "blob_hashes": list(large),
        "blob_sizes": [Int4(len(data)) for data in large.values()],
        "blob_data": [None if is_external() else bodies.pack(data) for data in large.values()],
    }
