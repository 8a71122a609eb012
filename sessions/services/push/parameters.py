"""The parameters of the SQL statements of a push."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uuid_utils.compat import uuid7

from compaction.messages import Message
from sessions.services.ingestion import IngestedMessage
from sessions.services.push.values import NewTurn, Push, Target
from sessions.store import bodies
from sessions.store.blobs import is_external
from sessions.store.continuation_columns import continuation_columns
from sessions.store.counts import breakdown_pack


def read_parameters(target: Target, push: Push) -> dict[str, Any]:
    """Return the parameters of `READ` and `LOCK`."""
    return {
        "key": target.key_id,
        "project": target.project_id,
        "session": target.session_id,
        "idempotency_key": push.idempotency_key,
    }


def write_parameters(
    turn: NewTurn, push: Push, target: Target, *, answer: bytes | None, is_new_call: bool
) -> dict[str, Any]:
    """Return the parameters of `WRITE`. With `is_new_call`, the caller has checked the ids of the call."""
    session, usage, calibration = turn.session, push.usage, turn.calibration
    reported = usage.prompt_tokens if usage is not None else None
    return {
        "session": session.id,
        "project": session.project_id,
        "version": session.version,
        "key": target.key_id,
        "answer": answer if push.idempotency_key is not None else None,
        "turn": turn.index,
        "at": push.at,
        "format": turn.format,
        "model": turn.model,
        "session_model": turn.session_model,
        "context_window": turn.context_window,
        "first": turn.first_position,
        "count": len(turn.values),
        "plan_turn": turn.plan_turn,
        "preamble": turn.preamble_version,
        "preamble_hash": push.preamble.hash if push.preamble is not None else session.preamble_hash,
        "idempotency_key": push.idempotency_key,
        "body_hash": push.body_hash,
        "request_id": push.request_id,
        "response_id": push.response_id,
        "new_request_id": None if is_new_call else push.request_id,
        "new_response_id": None if is_new_call else push.response_id,
        "source": push.source.value,
        "push_position": turn.push_position,
        "estimate": turn.prompt.total,
        "reported": reported,
        "served": turn.served.total,
        "size": reported if reported is not None else turn.served.total,
        "components": breakdown_pack(turn.served),
        "context": turn.context.tokens,
        "shown": turn.shown.tokens,
        **continuation_columns(turn.continuation),
        "calibration": calibration.to_json(),
        "factor": calibration.factor,
        "overhead": calibration.overhead,
        "budget": turn.budget,
        "spike": turn.spike.tokens if turn.spike is not None else None,
        "first_token_ms": push.latency.first_token_ms,
        "duration_ms": push.latency.duration_ms,
        "cost": turn.cost_microusd,
        "unpriced": int(usage is not None and turn.cost_microusd is None),
        "uncached": usage.uncached_tokens if usage is not None else None,
        "cache_read": usage.cache_read_tokens if usage is not None else None,
        "cache_write": usage.cache_write_tokens if usage is not None else None,
        "output": usage.output_tokens if usage is not None else None,
        **_message_parameters(turn.values, push.messages),
    }


def _message_parameters(values: Sequence[Message], messages: Sequence[IngestedMessage]) -> dict[str, Any]:
    digests = [message.sha256 if message.is_large else None for message in messages]
    large = {digest: m.data for digest, m in zip(digests, messages, strict=True) if digest is not None}
    return {
        "positions": [value.position for value in values],
        "roles": [value.role.value for value in values],
        "tokens": [value.tokens for value in values],
        "flags": [message.flags for message in messages],
        "tool_names": [message.tool_name for message in messages],
        "bodies": [
            bodies.pack(message.data) if digest is None else None
            for digest, message in zip(digests, messages, strict=True)
        ],
        "in_blob": digests,
        "content_hashes": [message.content_hash for message in messages],
        "blob_ids": [uuid7() for _ in large],
        "blob_hashes": list(large),
        "blob_sizes": [len(data) for data in large.values()],
        "blob_data": [None if is_external() else bodies.pack(data) for data in large.values()],
    }
