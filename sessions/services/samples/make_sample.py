"""Generate the sample session: `python -m sessions.services.samples.make_sample`.

The result is the same on every run.
"""

from __future__ import annotations

import gzip
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from .stories.steps import ROOT, Call, Step
from .stories.tides import TITLE, logged_steps

_TARGET = Path(__file__).with_name("sample-session.jsonl.gz")
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
        blocks = self._blocks(step)
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
        for call, block in zip(step.calls, (b for b in blocks if b["type"] == "tool_use"), strict=True):
            self._result(call, block["id"])

    def title(self, text: str) -> None:
        """Add the title that the client gives to the conversation."""
        self.lines.append({"type": "summary", "summary": text, "leafUuid": self._parent})

    def _blocks(self, step: Step) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if step.thinking:
            signature = uuid.uuid5(uuid.NAMESPACE_URL, step.thinking).hex * 4
            blocks.append({"type": "thinking", "thinking": step.thinking, "signature": signature})
        if step.text:
            blocks.append({"type": "text", "text": step.text})
        for call in step.calls:
            name = {"name": call.tool, "input": call.arguments}
            blocks += [{"type": "tool_use", "id": self._id("toolu"), **name}]
        return blocks

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
        self._line("user", message={"role": "user", "content": text})

    def _result(self, call: Call, call_id: str) -> None:
        self._grow(call.output)
        block: dict[str, Any] = {"tool_use_id": call_id, "type": "tool_result", "content": call.output}
        if call.is_error:
            block["is_error"] = True
        self._line("user", message={"role": "user", "content": [block]})

    def _compaction(self, recap: str) -> None:
        facts = {"trigger": "manual", "preTokens": int(self._prompt)}
        self._parent = None
        self._line("system", subtype="compact_boundary", compactMetadata=facts)
        self._prompt, self._cached = float(_PREAMBLE_TOKENS), _PREAMBLE_TOKENS - 4_000
        self._grow(recap)
        self._line("user", message={"role": "user", "content": recap}, isCompactSummary=True)

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


def sample_bytes() -> bytes:
    """Return the whole log, compressed."""
    log = Log()
    for step in logged_steps():
        log.step(step)
    log.title(TITLE)
    lines = b"".join(orjson.dumps(line) + b"\n" for line in log.lines)
    return gzip.compress(lines, mtime=0)


if __name__ == "__main__":
    _TARGET.write_bytes(sample_bytes())
