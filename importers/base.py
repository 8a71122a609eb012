"""What an importer is, and the values that it yields.

An importer turns one log file into sessions. It is plain Python over bytes: it knows no database, so the
command line, the API, the replay and the benchmarks read logs by the same code. A new format is one file
in this folder with one `Importer`, and one line in `registry.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from compaction.messages import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One log to read: its name as people know it (without `.gz`/`.zst`), and its bytes, decompressed.

    A folder with one file a model call is one log too, a call a line (see `reading.py`).
    """

    name: str
    data: bytes

    @property
    def stem(self) -> str:
        """The name without folders and without its endings, for ids where the log itself has none."""
        return self.name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].split(".", 1)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A piece of a log that could not be read. The rest of the file is imported all the same."""

    file: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMessage:
    """One provider message. `body` is its JSON in the session's `format` ("anthropic" or "openai").

    `source_id` is stable within its session across imports of a file that has grown. `is_meta` marks lines
    that the client put in by itself and no person wrote (reminders, command output): they are model input,
    but not user turns. `is_summary` marks the client's own summary that opens a compacted context.
    """

    body: Mapping[str, Any]
    source_id: str
    at: datetime | None = None
    is_meta: bool = False
    is_summary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCompaction:
    """The recording client compacted its context before this turn: what it had sent until then is gone."""

    trigger: str = ""
    tokens_before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTurn:
    """One model call: the messages that are new in its prompt, then the model's answer.

    A turn without an answer holds what came after the last one, or before a compaction. `usage` is what the
    provider reported for the call, with its prompt size; `response_id` names the response, so that copies of
    it in forked logs are billed once. `cost_microusd` is set only where the log itself names the cost.
    `cache_write_1h_tokens` is the part of `usage.cache_write_tokens` that was written for an hour, which
    costs more.
    """

    messages: Sequence[ImportedMessage]
    model: str = ""
    usage: Usage | None = None
    response_id: str | None = None
    at: datetime | None = None
    client_compaction: ClientCompaction | None = None
    cost_microusd: int | None = None
    cache_write_1h_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSession:
    """A session as a log tells it. `external_id` is stable: importing again finds the same session.

    `system` and `tools` are JSON of the format, where the log has them. `context_window` is the model's
    window in tokens where the log names it.
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


class Importer(Protocol):
    """Reads one log format."""

    name: str  #: stable, for the command line and the API: "claude-code"
    label: str  #: for people: "Claude Code session log (JSONL)"

    def recognises(self, log: LogFile) -> bool:
        """Whether this is the format, by content; cheap (the first lines are enough), never raises."""
        ...

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        """The sessions of the file and whatever in it is damaged. Never raises on bad input."""
        ...
