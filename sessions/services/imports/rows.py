"""Imported turns as rows, written by COPY: logs bring tens of thousands of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from compaction.breakdown import TokenBreakdown
from sessions.models import AgentSession, Blob, Message, Turn
from sessions.models.transcript import MessageFlag
from sessions.selectors.convert import usage_fields
from sessions.services.blobs import contents_put
from sessions.services.imports.prepare import PreparedMessage, PreparedTurn
from sessions.services.push.rows import flags_of, tool_name_of
from sessions.store import bodies
from sessions.store.blobs import is_external
from sessions.store.postgres import rows_copy


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTurn:
    """A turn that is to be written, and its place in the session. `prompt` is what its call read."""

    turn: PreparedTurn
    index: int
    first_position: int
    prompt: TokenBreakdown
    billed: bool


def turns_write(session: AgentSession, turns: Sequence[NewTurn]) -> None:
    """Writes the turns with their messages. The session is locked."""
    blobs = _write_blobs(session.project_id, [message for new in turns for message in new.turn.messages])
    rows_copy(Turn._meta.db_table, [_turn_row(session, new) for new in turns])
    rows_copy(
        Message._meta.db_table,
        [
            _message_row(session, new, position, message, blobs)
            for new in turns
            for position, message in enumerate(new.turn.messages, start=new.first_position)
        ],
    )


def _turn_row(session: AgentSession, new: NewTurn) -> dict[str, Any]:
    turn, compaction = new.turn, new.turn.client_compaction
    told = compaction and {"trigger": compaction.trigger, "tokens_before": compaction.tokens_before}
    usage = dict.fromkeys(_USAGE) | dict(usage_fields(turn.usage))
    return {
        "session_id": session.pk,
        "index": new.index,
        "at": turn.at or session.started_at,
        "model": turn.model[:200],
        "first_position": new.first_position,
        "message_count": len(turn.messages),
        "preamble_version": session.preamble_version,
        "prompt_estimate": new.prompt.total,
        "component_tokens": new.prompt.counts,
        "cost_microusd": turn.cost_microusd,
        "response_id": turn.response_id,
        "billed": new.billed,
        "client_compaction": told and Jsonb(told),
        **usage,
    }


_USAGE = ("prompt_reported", "uncached_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


def _message_row(
    session: AgentSession,
    new: NewTurn,
    position: int,
    message: PreparedMessage,
    blobs: Mapping[bytes, UUID],
) -> dict[str, Any]:
    blob = blobs[message.sha256] if _is_large(message) else None
    return {
        "session_id": session.pk,
        "position": position,
        "turn_index": new.index,
        "role": message.value.role.value,
        "tokens": message.value.tokens,
        "flags": _flags(message),
        "tool_name": tool_name_of(message.value),
        "body": None if blob else bodies.pack(message.data),
        "blob_id": blob,
        "source_id": message.source_id,
    }


def _flags(message: PreparedMessage) -> int:
    flags = flags_of(message.value)
    if message.is_meta:
        flags |= MessageFlag.META
    if message.is_summary:
        flags |= MessageFlag.CLIENT_SUMMARY
    return int(flags)


def _write_blobs(project_id: Any, messages: Iterable[PreparedMessage]) -> Mapping[bytes, UUID]:
    """Stores the large bodies once per project; answers their ids by SHA-256."""
    large = {message.sha256: message.data for message in messages if _is_large(message)}
    if not large:
        return {}
    external = is_external()
    if external:
        contents_put(project_id, large)
    Blob.objects.bulk_create(
        (
            Blob(
                project_id=project_id,
                sha256=sha256,
                size=len(data),
                data=None if external else bodies.pack(data),
            )
            for sha256, data in sorted(large.items())  # in one order, so that two imports cannot deadlock
        ),
        ignore_conflicts=True,
        batch_size=100,
    )
    rows = Blob.objects.filter(project_id=project_id, sha256__in=list(large)).values_list("sha256", "id")
    return {bytes(sha256): id for sha256, id in rows}


def _is_large(message: PreparedMessage) -> bool:
    return len(message.data) > bodies.BLOB_BYTES
