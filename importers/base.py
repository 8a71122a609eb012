"""The interface of importers, and the values that they yield.

An importer reads sessions from one log. It is plain Python on bytes, without a database, so the command line,
the API, the replay and the benchmarks share it. A new format is one module in this package with an
`Importer`, and one entry in `registry.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Protocol

from compaction.messages import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One log: its name without `.gz` or `.zst`, its decompressed bytes, and when the file was last changed.

    Several files of a folder can be one log (see `reading.py`). `parts` are the first line and the name of
    each.
    """

    name: str
    data: bytes
    modified: datetime | None = None
    parts: Sequence[tuple[int, str]] = ()

    @property
    def path(self) -> PurePosixPath:
        """The path in the name, which may be one of Windows."""
        return PurePosixPath(self.name.replace("\\", "/"))

    @property
    def stem(self) -> str:
        """The file name without suffixes and leading dots, which is the id if the log contains none."""
        return self.path.name.lstrip(".").split(".", 1)[0] or "log"

    def damage(self, line: int, reason: str) -> Damage:
        """Return the report of a damaged line, which names the file that contains it."""
        first, name = next((part for part in reversed(self.parts) if part[0] <= line), (1, self.name))
        return Damage(file=name, line=line - first + 1, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A part of a log that could not be read. The rest of the file is imported."""

    file: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMessage:
    """One provider message. `body` is its JSON in the session's `format`, the name of a dialect.

    `source_id` identifies the message in its session and does not change when the log grows. `is_meta` marks
    messages that the client inserted (reminders, command output): they are model input, but not typed by a
    user. `is_summary` marks the client's summary at the start of a compacted context. `is_pinned` marks
    messages that no compaction edits. `omitted_from` is set for messages that the client sent only once: the
    number of messages of the session from which on a longer prompt does not contain it.
    """

    body: Mapping[str, Any]
    source_id: str
    at: datetime | None = None
    is_meta: bool = False
    is_summary: bool = False
    is_pinned: bool = False
    omitted_from: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCompaction:
    """A compaction by the recording client before a turn, which removed earlier messages from its context."""

    trigger: str = ""
    tokens_before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPreamble:
    """A system prompt and tools, as JSON in the session's format."""

    system: Any = None
    tools: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTurn:
    """One model call: the messages that are new in its prompt, then the model's answer.

    A turn without an answer contains the messages after the last answer, or before a compaction. `usage` is
    the usage that the provider reported. `response_id` identifies the response, so that its copies in forked
    logs are billed once. `request_id` is the provider's id of the request, if the log contains it.
    `cost_microusd` is set only if the log contains the cost. `cache_write_1h_tokens` is the part of
    `usage.cache_write_tokens` with a TTL of one hour, which costs more. `output_reported` are the output
    tokens that the provider reported if those of `usage` are an estimate. `prompt_served` is the estimated
    size of the call's prompt if it was not the whole transcript. `is_usage_final` is set if the output tokens
    were already compared with the answer. `billed` is false if the response is billed to another session.
    `preamble` is set if the system prompt or the tools change with this turn. Latencies are in milliseconds.
    """

    messages: Sequence[ImportedMessage]
    model: str = ""
    usage: Usage | None = None
    response_id: str | None = None
    request_id: str | None = None
    at: datetime | None = None
    client_compaction: ClientCompaction | None = None
    preamble: ImportedPreamble | None = None
    cost_microusd: int | None = None
    cache_write_1h_tokens: int = 0
    output_reported: int | None = None
    prompt_served: int | None = None
    is_usage_final: bool = False
    billed: bool = True
    first_token_ms: int | None = None
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedComment:
    """A comment on the turn with this index, and the name of its author."""

    turn: int
    text: str
    author: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSession:
    """A session of a log. `external_id` is stable, so importing the log again finds the same session.

    `system` and `tools` are JSON in the session's format, if the log contains them. Those of a turn replace
    them from that turn on. `context_window` is the model's context window in tokens, if the log contains it.
    `notes` and `comments` are stored only if the session is new.
    """

    external_id: str
    format: str
    agent: str
    turns: Sequence[ImportedTurn]
    model: str = ""
    title: str = ""
    parent_external_id: str | None = None
    started_at: datetime | None = None
    context_window: int | None = None
    system: Any = None
    tools: Any = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    notes: str = ""
    comments: Sequence[ImportedComment] = ()

    @property
    def message_count(self) -> int:
        return sum(len(turn.messages) for turn in self.turns)


class Importer(Protocol):
    """Reads one log format."""

    name: str  #: stable name for the command line and the API: "claude-code"
    label: str  #: label for users: "Claude Code session log (JSONL)"

    def recognizes(self, log: LogFile) -> bool:
        """Return whether the log has this format, judging by its first lines. Never raises."""
        ...

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        """Yield the sessions of the log and its damaged parts. Never raises on bad input.

        `registry.log_items` skips sessions without turns.
        """
        ...
