"""Ingestion: redact, parse and count messages. Pushes and imports use the same code.

Nothing here uses the database, so imports can run it in other processes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction import dialects
from compaction.adapters.tiktoken_counter import counter
from compaction.messages import Message
from redaction import Finding, Redaction, redact_bytes
from sessions.store import bodies
from sessions.store.flags import MessageFlag


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedMessage:
    """One message: its JSON bytes without secrets, and the message that the core parsed from them.

    `source_id`, `is_meta`, `is_summary`, `is_pinned` and `omitted_from` are set only for imported messages
    (see `ImportedMessage`), `content_hash` only for those that a client sent as part of its history (see
    `compaction.identity`).
    """

    data: bytes
    value: Message
    source_id: str | None = None
    is_meta: bool = False
    is_summary: bool = False
    is_pinned: bool = False
    omitted_from: int | None = None
    content_hash: bytes | None = None

    @property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.data).digest()

    @property
    def is_large(self) -> bool:
        """Whether the content is stored in a `Blob` rather than in the message's row."""
        return len(self.data) > bodies.BLOB_BYTES

    @property
    def flags(self) -> int:
        """The bits of `Message.flags`."""
        flags = MessageFlag.ERROR if any(result.is_error for result in self.value.tool_results) else 0
        if self.is_meta:
            flags |= MessageFlag.META
        if self.is_summary:
            flags |= MessageFlag.CLIENT_SUMMARY
        if self.is_pinned:
            flags |= MessageFlag.PINNED
        return int(flags)

    @property
    def tool_name(self) -> str:
        """The name of the first tool that the message calls, without NUL, which Postgres rejects."""
        return next((call.name for call in self.value.tool_calls), "")[:200].replace("\0", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPreamble:
    """System prompt and tools as JSON bytes without secrets, with their tokens."""

    system: bytes | None
    tools: bytes | None
    system_tokens: int
    tools_tokens: int

    @property
    def hash(self) -> bytes:
        return bodies.content_hash(b"%b\0%b" % (self.system or b"", self.tools or b""))

    @property
    def tool_definitions(self) -> list[Any]:
        """The tool definitions as JSON values."""
        return bodies.json_value(self.tools) if self.tools else []

    @property
    def components(self) -> Mapping[str, int]:
        """Tokens by component of the prompt."""
        return {"system": self.system_tokens, "tools": self.tools_tokens}

    @property
    def columns(self) -> Mapping[str, Any]:
        """The content as columns of `Preamble`."""
        return {
            "system": self.system or None,
            "tools": self.tools or None,
            "system_tokens": self.system_tokens,
            "tools_tokens": self.tools_tokens,
        }


def messages_ingest(
    raw: Sequence[bytes], values: Sequence[Mapping[str, Any]], *, format: str | None, redaction: Redaction
) -> tuple[list[IngestedMessage], list[Finding]]:
    """Return the messages without secrets, with their tokens, and the secrets found in each.

    `raw` and `values` are the same messages as JSON bytes and as parsed JSON. `format` is the dialect of the
    session; each message is read in the dialect in which it is written.
    """
    found: list[Finding] = []
    clean: list[bytes] = []
    clean_values: list[Any] = []
    for data, value in zip(raw, values, strict=True):
        redacted, findings = redact_bytes(data, redaction=redaction)
        found.extend(findings)
        clean.append(redacted)
        clean_values.append(value if redacted is data else bodies.json_value(redacted))
    parsed = dialects.parse_mixed(clean_values, default=format, counter=counter())
    messages = [IngestedMessage(data=data, value=value) for data, value in zip(clean, parsed, strict=True)]
    return messages, found


def preamble_ingest(
    system: Any, tools: Any, *, redaction: Redaction
) -> tuple[NewPreamble | None, list[Finding]]:
    """Return the system prompt and tools without secrets, with their tokens, and the secrets found.

    Returns None as the preamble if both are None.
    """
    if system is None and tools is None:
        return None, []
    system_json, system_findings = _redacted_json(system, redaction)
    tools_json, tools_findings = _redacted_json(tools, redaction)
    preamble = NewPreamble(
        system=system_json,
        tools=tools_json,
        system_tokens=json_tokens(system_json),
        tools_tokens=json_tokens(tools_json),
    )
    return preamble, [*system_findings, *tools_findings]


def _redacted_json(value: Any, redaction: Redaction) -> tuple[bytes | None, Sequence[Finding]]:
    return redact_bytes(bodies.json_bytes(value), redaction=redaction) if value else (None, ())


def json_tokens(data: bytes | None) -> int:
    """Return the tokens of a system prompt or of tools. For a JSON string, counts its text."""
    if data is None:
        return 0
    value = bodies.json_value(data)
    return counter().count(value if isinstance(value, str) else data.decode())
