"""From what a log tells to what is stored: secrets out, tokens counted, calls priced. No database.

All that costs time at an import happens here, so that it can run in other processes (see `jobs.py`).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pricing
from compaction import dialects
from compaction.adapters.tiktoken_counter import counter
from compaction.messages import Message, Usage
from importers.base import ClientCompaction, ImportedMessage, ImportedSession, ImportedTurn
from redaction import Redaction, redact_bytes
from sessions.store import bodies

#: Names and ids are kept up to this length (characters).
_LONGEST_NAME = 200

#: A NUL in JSON, which Postgres takes neither in a text nor in JSON, and what stands for it then.
_NUL, _REPLACEMENT = rb"\u0000", rb"\ufffd"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedMessage:
    """One message: its JSON bytes without secrets, and what the core reads in them, tokens counted."""

    data: bytes
    value: Message
    source_id: str
    is_meta: bool
    is_summary: bool

    @property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.data).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTurn:
    """One model call. `cost_microusd` is what the log names, else by the price table, None where neither
    has one."""

    messages: Sequence[PreparedMessage]
    model: str = ""
    usage: Usage | None = None
    cost_microusd: int | None = None
    response_id: str | None = None
    at: datetime | None = None
    client_compaction: ClientCompaction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSession:
    """A session as its log tells it. `facts` is all but its turns, without secrets too; `system` and `tools`
    are JSON bytes. `redacted` counts what was taken out, by kind."""

    facts: ImportedSession
    turns: Sequence[PreparedTurn]
    system: bytes | None = None
    tools: bytes | None = None
    system_tokens: int = 0
    tools_tokens: int = 0
    redacted: Mapping[str, int] = field(default_factory=dict)


def session_prepare(imported: ImportedSession, *, key: Redaction) -> PreparedSession:
    """`key` is the project's `Redaction`. Raises FormatError where a message is not of its format."""
    found: Counter[str] = Counter()
    turns = [_turn(turn, imported, key, found) for turn in imported.turns]
    system, tools = (_json(value, key, found) for value in (imported.system, imported.tools))
    return PreparedSession(
        facts=_facts(imported, key, found),
        turns=turns,
        system=system,
        tools=tools,
        system_tokens=_tokens(imported.system, system),
        tools_tokens=_tokens(imported.tools, tools),
        redacted=found,
    )


def _turn(turn: ImportedTurn, imported: ImportedSession, key: Redaction, found: Counter[str]) -> PreparedTurn:
    return PreparedTurn(
        messages=[_message(message, imported.format, key, found) for message in turn.messages],
        model=_name(turn.model),
        usage=turn.usage,
        cost_microusd=_cost(turn, imported.model),
        response_id=turn.response_id and _name(turn.response_id),
        at=turn.at or next((message.at for message in reversed(turn.messages) if message.at), None),
        client_compaction=turn.client_compaction,
    )


def _message(message: ImportedMessage, format: str, key: Redaction, found: Counter[str]) -> PreparedMessage:
    raw = bodies.json_bytes(message.body)
    data, findings = redact_bytes(raw, key=key)
    found.update({finding.kind: finding.count for finding in findings})
    body = message.body if data is raw else bodies.json_value(data)
    [value] = dialects.parse([dict(body)], format=format, counter=counter())
    return PreparedMessage(
        data=data,
        value=value,
        source_id=_name(message.source_id),
        is_meta=message.is_meta,
        is_summary=message.is_summary,
    )


def _cost(turn: ImportedTurn, model: str) -> int | None:
    if turn.cost_microusd is not None or turn.usage is None:
        return turn.cost_microusd
    return pricing.price(
        turn.model or model, turn.usage, turn.at, cache_write_1h_tokens=turn.cache_write_1h_tokens
    ).microusd


def _facts(imported: ImportedSession, key: Redaction, found: Counter[str]) -> ImportedSession:
    told = bodies.json_bytes([imported.title, list(imported.tags), dict(imported.metadata)])
    told, findings = redact_bytes(told.replace(_NUL, _REPLACEMENT), key=key)
    found.update({finding.kind: finding.count for finding in findings})
    title, tags, metadata = bodies.json_value(told)
    return replace(
        imported,
        turns=(),
        system=None,
        tools=None,
        external_id=_name(imported.external_id),
        parent_external_id=imported.parent_external_id and _name(imported.parent_external_id),
        agent=_name(imported.agent),
        model=_name(imported.model),
        title=title,
        tags=tags,
        metadata=metadata,
    )


def _name(text: str) -> str:
    return text.replace("\0", "\ufffd")[:_LONGEST_NAME]


def _json(value: Any, key: Redaction, found: Counter[str]) -> bytes | None:
    if not value:
        return None
    data, findings = redact_bytes(bodies.json_bytes(value), key=key)
    found.update({finding.kind: finding.count for finding in findings})
    return data


def _tokens(value: Any, data: bytes | None) -> int:
    """A text counts as what it says, anything else as its JSON."""
    if data is None:
        return 0
    return counter().count(bodies.json_value(data) if isinstance(value, str) else data.decode())
