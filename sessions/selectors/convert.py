"""Convert rows to the core's values and back. Only this module knows both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from compaction import dialects
from compaction.edits import Edit as EditValue
from compaction.edits import Op
from compaction.messages import USAGE_COUNTS, Usage
from compaction.messages import Message as MessageValue
from sessions.models import Edit, Message
from sessions.store import bodies
from sessions.store.blobs import body_read
from sessions.store.edit_texts import Base, edit_texts, text_pack, text_unpack
from sessions.store.flags import MessageFlag
from sessions.store.text import storable


def message_bytes(row: Message) -> bytes:
    """Return the provider's JSON of a message. Select the blob with the row to avoid another query."""
    if row.blob is None:
        return bodies.unpack(row.body or b"")
    if row.blob.data is None:
        # Cached on the row, because callers often need both its value and its bytes.
        row.blob.data = body_read(None, row.blob.project_id, row.blob.sha256, row.role)
    return bodies.unpack(row.blob.data)


def message_body(row: Message) -> dict[str, Any]:
    value: dict[str, Any] = bodies.json_value(message_bytes(row))
    return value


def message_value(row: Message, format: str | None) -> MessageValue:
    """Return the core's value of a stored message, with the tokens counted when it was stored.

    `format` is the dialect of the session.
    """
    return value_of(
        message_bytes(row),
        format=format,
        position=row.position,
        turn=row.turn_index,
        tokens=row.tokens,
        flags=row.flags,
    )


def value_of(
    data: bytes, *, format: str | None, position: int, turn: int, tokens: int, flags: int
) -> MessageValue:
    """Return the core's value of a message's JSON, read in the dialect in which it is written.

    `format` is the dialect of the session; `flags` are bits of `MessageFlag`.
    """
    return dialects.parse_message(
        bodies.json_value(data),
        default=format,
        position=position,
        turn=turn,
        tokens=tokens,
        pinned=bool(flags & MessageFlag.PINNED),
    )


def edit_values(rows: Iterable[Edit]) -> list[EditValue]:
    """Return the values of edits. One call reads fewer statements than one per edit."""
    found = list(rows)
    repeating = edit_texts(row.pk for row in found if row.bases)
    return [_edit_value(row, repeating.get(row.pk)) for row in found]


def edit_value(row: Edit) -> EditValue:
    [value] = edit_values([row])
    return value


def _edit_value(row: Edit, text: str | None) -> EditValue:
    """Return the value of an edit. `text` is its text if that is stored after other texts."""
    return EditValue(
        strategy=row.strategy,
        op=Op(row.op),
        position=row.position,
        end=row.end,
        part=row.part,
        text=text_unpack([row.text]).decode() if text is None else text,
        handle=row.handle,
        reason=row.reason,
        tokens_before=row.tokens_before,
        tokens_after=row.tokens_after,
    )


def edit_row(value: EditValue, tool: str = "", base: Base | None = None) -> dict[str, Any]:
    """Return the column values of an edit.

    `tool` is the tool whose output it changed. `base` is a text that its own repeats.
    """
    return {
        "strategy": value.strategy,
        "op": value.op.value,
        "position": value.position,
        "end": value.end,
        "part": value.part,
        "text": text_pack(value.text, base),
        "handle": value.handle,
        "reason": storable(value.reason),
        "tokens_before": value.tokens_before,
        "tokens_after": value.tokens_after,
        "tool": storable(tool[:200]),
    }


class ReportedUsage(Protocol):
    """The columns of a turn with the usage of its call."""

    @property
    def prompt_reported(self) -> int | None: ...
    @property
    def uncached_tokens(self) -> int | None: ...
    @property
    def cache_read_tokens(self) -> int | None: ...
    @property
    def cache_write_tokens(self) -> int | None: ...
    @property
    def output_tokens(self) -> int | None: ...


def usage_of(turn: ReportedUsage) -> Usage | None:
    """Return the usage that the provider reported for the turn's call, or None."""
    if turn.prompt_reported is None:
        return None
    return Usage(
        uncached_tokens=turn.uncached_tokens or 0,
        cache_read_tokens=turn.cache_read_tokens or 0,
        cache_write_tokens=turn.cache_write_tokens or 0,
        output_tokens=turn.output_tokens or 0,
        prompt=turn.prompt_reported,
    )


def usage_fields(usage: Usage | None) -> Mapping[str, int | None]:
    """Return the columns of a turn that store its usage."""
    if usage is None:
        return dict.fromkeys(("prompt_reported", *USAGE_COUNTS))
    return {"prompt_reported": usage.prompt_tokens, **usage.counts}


def usage_json(row: Any) -> dict[str, int] | None:
    """Return the billed tokens of a turn's call, or None if no usage was reported."""
    if row.prompt_reported is None:
        return None
    return {
        "uncached": row.uncached_tokens,
        "cache_read": row.cache_read_tokens,
        "cache_write": row.cache_write_tokens,
        "output": row.output_tokens,
    }


def latency_json(row: Any) -> dict[str, int | None] | None:
    """Return the latency of a turn's call, or None if it was not reported."""
    if row.first_token_ms is None and row.duration_ms is None:
        return None
    return {"time_to_first_token_ms": row.first_token_ms, "duration_ms": row.duration_ms}
