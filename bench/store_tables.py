"""Rows in the format for COPY, by table and column."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import JSONField, Model
from psycopg.types.json import Jsonb

from bench.store_texts import Body
from compaction.messages import Usage
from compaction.sizes.breakdown import TokenBreakdown
from sessions.models import TurnSource
from sessions.models.fields import PackedField, PackedJSONField
from sessions.store import bodies
from sessions.store.counts import breakdown_pack

Row = Mapping[str, Any]


def turn_row(
    session: UUID,
    index: int,
    at: datetime,
    model: str,
    position: int,
    raw: Mapping[str, int],
    shown: Mapping[str, int],
    usage: Usage,
    cost: int | None,
) -> Row:
    return {
        "session_id": session,
        "index": index,
        "at": at,
        "model": model,
        "first_position": position,
        "message_count": 2,
        "preamble_version": 1,
        "prompt_estimate": sum(raw.values()),
        "prompt_served": sum(shown.values()),
        "prompt_reported": usage.prompt_tokens,
        "component_tokens": breakdown_pack(TokenBreakdown(tokens=shown)),
        "uncached_tokens": usage.uncached_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "cost_microusd": cost,
        "billed": True,
        "source": TurnSource.PUSH.value,
    }


def message_row(session: UUID, position: int, index: int, body: Body) -> Row:
    return {
        "session_id": session,
        "position": position,
        "turn_index": index,
        "role": body.role,
        "tokens": body.tokens,
        "flags": 0,
        "tool_name": body.tool,
        "body": body.data,
    }


def row_of(instance: Model) -> dict[str, Any]:
    """Return the columns of an unsaved row, without automatic primary keys."""
    return {name: value for name, value in _columns(instance) if value is not None or name != "id"}


def _columns(instance: Model) -> Iterator[tuple[str, Any]]:
    for column in instance._meta.concrete_fields:
        value = getattr(instance, column.attname)
        if isinstance(column, JSONField):
            value = Jsonb(value)
        elif isinstance(column, PackedJSONField):
            value = bodies.pack(bodies.json_bytes(value))
        elif isinstance(column, PackedField) and value is not None:
            value = bodies.pack(value)
        yield str(column.column), value


def uuid_of(random_: random.Random, at: datetime) -> UUID:
    """Return a time-ordered UUID, like those of contextapp."""
    head = int(at.timestamp() * 1_000) << 80
    return UUID(int=head | random_.getrandbits(80) & ~(0xF << 76) | 7 << 76)
