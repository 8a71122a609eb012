"""The parameters of the statements of a push: values to columns.

Whole numbers are given their type: a parameter whose type follows its size would make the server prepare
the same statement again and again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from psycopg.types.numeric import Int4, Int8
from uuid_utils.compat import uuid7

from compaction.messages import Message, Usage
from sessions.models.transcript import MessageFlag
from sessions.services.push.values import NewPreamble, Push, Pushed, PushedMessage
from sessions.store import bodies
from sessions.store.blobs import is_external


def write_parameters(pushed: Pushed, push: Push, *, key_id: UUID, answer: bytes | None) -> dict[str, Any]:
    session, usage = pushed.session, push.usage
    reported = usage.prompt_tokens if usage is not None else None
    return {
        "session": session.id,
        "project": session.project_id,
        "version": session.version,
        "key": key_id,
        "answer": answer if push.idempotency_key is not None else None,
        "turn": Int4(pushed.turn),
        "model": pushed.model,
        "first": Int4(pushed.first_position),
        "count": Int4(len(pushed.values)),
        "preamble": Int4(pushed.preamble_version),
        "preamble_hash": push.preamble.hash if push.preamble is not None else session.preamble_hash,
        "idempotency_key": push.idempotency_key,
        "body_hash": push.body_hash,
        "estimate": Int4(pushed.asked.total),
        "reported": _int4(reported),
        "served": Int4(pushed.served.total),
        "size": Int4(reported if reported is not None else pushed.served.total),
        "components": [Int4(count) for count in pushed.served.counts],
        "context": Jsonb(pushed.context.tokens),
        "shown": Jsonb(pushed.shown.tokens),
        "open_calls": [call.replace("\0", "\ufffd") for call in pushed.seam.open_calls],
        "needs_repair": not pushed.seam.regular,
        "calibration": pushed.calibration,
        "cost": Int8(pushed.cost_microusd) if pushed.cost_microusd is not None else None,
        "unpriced": Int4(usage is not None and pushed.cost_microusd is None),
        **_usage_parameters(usage),
        **_message_parameters(pushed.values, push.messages),
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


def _message_parameters(values: Sequence[Message], messages: Sequence[PushedMessage]) -> dict[str, Any]:
    digests = [
        hashlib.sha256(message.data).digest() if len(message.data) > bodies.BLOB_BYTES else None
        for message in messages
    ]
    large = {digest: m.data for digest, m in zip(digests, messages, strict=True) if digest is not None}
    return {
        "positions": [Int4(value.position) for value in values],
        "roles": [value.role.value for value in values],
        "tokens": [Int4(value.tokens) for value in values],
        "flags": [Int4(flags_of(value)) for value in values],
        "tool_names": [tool_name_of(value) for value in values],
        "bodies": [
            bodies.pack(message.data) if digest is None else None
            for digest, message in zip(digests, messages, strict=True)
        ],
        "in_blob": digests,
        "blob_ids": [uuid7() for _ in large],
        "blob_hashes": list(large),
        "blob_sizes": [Int4(len(data)) for data in large.values()],
        "blob_data": [None if is_external() else bodies.pack(data) for data in large.values()],
    }


def flags_of(value: Message) -> int:
    return int(MessageFlag.ERROR) if any(result.is_error for result in value.tool_results) else 0


def tool_name_of(value: Message) -> str:
    return next((call.name for call in value.tool_calls), "")[:200].replace("\0", "")


def preamble_parameters(pushed: Pushed, preamble: NewPreamble) -> dict[str, Any]:
    return {
        "session": pushed.session.id,
        "version": Int4(pushed.preamble_version),
        "from_turn": Int4(pushed.turn),
        "system": bodies.pack(preamble.system) if preamble.system else None,
        "tools": bodies.pack(preamble.tools) if preamble.tools else None,
        "system_tokens": Int4(preamble.system_tokens),
        "tools_tokens": Int4(preamble.tools_tokens),
    }
