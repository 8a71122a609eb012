"""Small synthetic logs in each format."""

from __future__ import annotations

from typing import Any

import orjson

from importers.base import Damage, ImportedSession, LogFile
from importers.registry import log_items, recognize

SESSION = "11111111-2222-3333-4444-555555555555"


def jsonl(*values: Any, name: str = f"{SESSION}.jsonl") -> LogFile:
    return LogFile(name=name, data=b"".join(orjson.dumps(value) + b"\n" for value in values))


def document(value: Any, name: str = "run.json") -> LogFile:
    return LogFile(name=name, data=orjson.dumps(value, option=orjson.OPT_INDENT_2))


def read(log: LogFile, format: str) -> tuple[list[ImportedSession], list[Damage]]:
    """Return the sessions and damaged parts of a log, which must be recognized as `format`."""
    importer = recognize(log)
    assert importer is not None
    assert importer.name == format
    items = list(log_items(importer, log))
    sessions = [item for item in items if isinstance(item, ImportedSession)]
    return sessions, [item for item in items if isinstance(item, Damage)]


def user(text: Any, uuid: str, **fields: Any) -> dict[str, Any]:
    """Return a Claude Code line with a user message."""
    return _line("user", uuid, {"role": "user", "content": text}, fields)


def result(call: str, text: str, uuid: str) -> dict[str, Any]:
    """Return a Claude Code line with a tool result."""
    return user([{"type": "tool_result", "tool_use_id": call, "content": text}], uuid)


def block(
    response: str, block: dict[str, Any], uuid: str, *, output: int = 1, **fields: Any
) -> dict[str, Any]:
    """Return a Claude Code line with one block of a response."""
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 40, "cache_read_input_tokens": 500}
    message = {"id": response, "role": "assistant", "model": "claude-opus-4-5", "content": [block]}
    return _line("assistant", uuid, message | {"usage": usage | {"output_tokens": output}}, fields)


def tool_use(call: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": "a.py"}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _line(kind: str, uuid: str, message: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    base = {"type": kind, "uuid": uuid, "sessionId": SESSION, "timestamp": "2026-01-05T10:00:00Z"}
    return base | {"message": message} | fields
