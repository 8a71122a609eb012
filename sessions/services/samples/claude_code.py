"""The sample session that is imported from a log, as Claude Code writes it.

Its client compacts its own context. The log is the same on every run.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from accounts.models import Project
from importers.base import ImportedSession, LogFile
from importers.registry import IMPORTERS
from sessions.models import AgentSession
from sessions.services.imports.store import session_import
from sessions.services.samples.stories.steps import ROOT, Step
from sessions.services.samples.stories.tides import TITLE, logged_steps
from sessions.services.samples.wire import assistant_message, result_messages, user_message

_SESSION = str(uuid.uuid5(uuid.NAMESPACE_URL, "tidewater/sample"))
_MODEL = "claude-opus-4-5-20251101"
_START = datetime(2026, 3, 2, 8, 30, tzinfo=UTC)
#: System prompt and tools of the client, which its log does not contain but its usage includes.
_PREAMBLE_TOKENS = 17_400
_CHARACTERS_PER_TOKEN = 2.6


class Log:
    """The lines of the log, and the current size of the prompt."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self._now = _START
        self._parent: str | None = None
        self._count = 0
        self._prompt = float(_PREAMBLE_TOKENS)
        self._cached = 0

    def step(self, step: Step) -> None:
        """Add a step: the user message, the response block by block, and the tool results."""
        if step.compacted_to:
            self._compaction(step.compacted_to)
            return
        if step.user:
            self._user(step.user)
        calls = {self._id("toolu"): call for call in step.calls}
        blocks = assistant_message(step, calls, "anthropic")["content"]
        usage = self._usage(blocks)
        message_id, request_id = self._id("msg"), self._id("req")
        for block in blocks:
            message: dict[str, Any] = {
                "model": _MODEL,
                "id": message_id,
                "type": "message",
                "role": "assistant",
            }
            message |= {"content": [block], "stop_reason": None, "usage": usage}
            self._line("assistant", message=message, requestId=request_id)
        for id, call in calls.items():
            self._grow(call.output)
            for result in result_messages({id: (call.output, call.is_error)}, "anthropic"):
                self._line("user", message=result)

    def title(self, text: str) -> None:
        """Add the title that the client gives to the conversation."""
        self.lines.append({"type": "summary", "summary": text, "leafUuid": self._parent})

    def _usage(self, blocks: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the usage: all but the last few prompt tokens are read from the cache or written to it."""
        prompt, uncached = int(self._prompt), 4
        written = prompt - uncached - self._cached
        usage = {
            "input_tokens": uncached,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": self._cached,
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": int(sum(_size(block) for block in blocks) / _CHARACTERS_PER_TOKEN) + 12,
            "service_tier": "standard",
        }
        self._cached = prompt - uncached
        self._grow(blocks)
        return usage

    def _user(self, text: str) -> None:
        self._now += timedelta(minutes=3)
        self._grow(text)
        self._line("user", message=user_message(text))

    def _compaction(self, recap: str) -> None:
        facts = {"trigger": "manual", "preTokens": int(self._prompt)}
        self._parent = None
        self._line("system", subtype="compact_boundary", compactMetadata=facts)
        self._prompt, self._cached = float(_PREAMBLE_TOKENS), _PREAMBLE_TOKENS - 4_000
        self._grow(recap)
        self._line("user", message=user_message(recap), isCompactSummary=True)

    def _line(self, kind: str, **fields: Any) -> None:
        self._now += timedelta(seconds=7)
        identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f"tidewater/{len(self.lines)}"))
        record = {"parentUuid": self._parent, "isSidechain": False, "cwd": ROOT, "sessionId": _SESSION}
        record |= {"version": "2.1.0", "gitBranch": "fix/secondary-offsets", "type": kind, "uuid": identity}
        self.lines.append(record | {"timestamp": self._now.isoformat().replace("+00:00", "Z")} | fields)
        self._parent = identity

    def _grow(self, value: Any) -> None:
        self._prompt += _size(value) / _CHARACTERS_PER_TOKEN

    def _id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_sample{self._count:04d}"


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(orjson.dumps(value))


def sample_log() -> LogFile:
    """Return a fictional coding task of about fifty turns, in Claude Code's log format."""
    log = Log()
    for step in logged_steps():
        log.step(step)
    log.title(TITLE)
    return LogFile(
        name="sample-session.jsonl", data=b"".join(orjson.dumps(line) + b"\n" for line in log.lines)
    )


def sample_log_import(*, project: Project, title: str = "") -> AgentSession:
    """Import the log, or return its session if it exists. `title` replaces the title in the log."""
    log = sample_log()
    importer = IMPORTERS["claude-code"]
    imported = next(item for item in importer.read(log) if isinstance(item, ImportedSession))
    if title:
        imported = replace(imported, title=title, tags=["sample"])
    return session_import(project=project, imported=imported, origin=importer.name).session
