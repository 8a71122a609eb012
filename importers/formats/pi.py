"""pi session logs: one JSON object per line; the first is `{"type": "session", ...}`.

pi supports many providers and has its own log format. It is converted to Anthropic's, which can represent all
of its content: `toolCall` becomes `tool_use`, a `toolResult` message becomes a `tool_result` block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compaction.messages import Usage
from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.jsonlines import first_objects, objects, read_records
from importers.turns import Answer, TurnBuilder, in_one_message
from importers.values import (
    disjoint_usage,
    id_of,
    mapping_of,
    microusd_of,
    request_of,
    text_of,
    time_of,
    title_of,
    tokens_of,
)


class PiImporter:
    """Reads pi session logs."""

    name = "pi"
    label = "pi session log (JSONL)"

    def recognizes(self, log: LogFile) -> bool:
        first = first_objects(log, 1)
        return bool(first) and first[0].get("type") == "session" and "cwd" in first[0]

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        reading = _Reading()
        yield from read_records(log, objects(log), lambda record: reading.take(record.value))
        yield reading.session(log)


class _Reading:
    """The state of reading one session."""

    def __init__(self) -> None:
        self._turns = TurnBuilder(in_one_message)
        self._header: Mapping[str, Any] = {}
        self._model = ""
        self._first_words = ""
        self._name = ""
        self._entries = 0

    def take(self, record: Mapping[str, Any]) -> None:
        kind = record.get("type")
        self._entries += 1
        source_id = str(record.get("id") or f"entry-{self._entries}")
        if kind == "session":
            self._header = self._header or record
        elif kind == "session_info":
            self._name = str(record.get("name") or self._name)
        elif kind in ("compaction", "branch_summary"):
            self._take_summary(kind, source_id, record)
        elif kind in ("message", "custom_message"):
            message = record.get("message") or {"role": "custom", "content": record["content"]}
            self._take_message(source_id, message, record)

    def session(self, log: LogFile) -> ImportedSession:
        header = self._header
        return ImportedSession(
            external_id=str(header.get("id") or log.stem),
            format="anthropic",
            agent="pi",
            turns=self._turns.turns(),
            model=self._model or str(header.get("modelId") or ""),
            title=title_of(self._name) or title_of(self._first_words),
            started_at=time_of(header.get("timestamp")),
            metadata={"cwd": header["cwd"]} if header.get("cwd") else {},
        )

    def _take_summary(self, kind: str, source_id: str, record: Mapping[str, Any]) -> None:
        """Read a summary. A compaction also keeps the newest messages, which precede it in the log."""
        before = tokens_of(record, "tokensBefore") or None
        if kind == "compaction":
            self._turns.compacted(ClientCompaction(tokens_before=before))
        body = {"role": "user", "content": [{"type": "text", "text": str(record["summary"])}]}
        at = time_of(record.get("timestamp"))
        self._turns.add(ImportedMessage(body=body, source_id=source_id, at=at, is_summary=True))

    def _take_message(self, source_id: str, message: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        role, at = message["role"], time_of(record.get("timestamp"))
        if role == "assistant":
            self._take_answer(source_id, message, at)
        elif role == "toolResult":
            body = {"role": "user", "content": [_tool_result(message)]}
            result = ImportedMessage(body=body, source_id=source_id, at=at)
            self._turns.result(str(message["toolCallId"]), result)
        elif content := _shell(message) if role == "bashExecution" else _blocks(message["content"]):
            body = {"role": "user", "content": content}
            self._turns.add(ImportedMessage(body=body, source_id=source_id, at=at, is_meta=role != "user"))
            if role == "user":
                self._first_words = request_of(self._first_words, text_of(content))

    def _take_answer(self, source_id: str, message: Mapping[str, Any], at: Any) -> None:
        """Read a response. Skip one that was aborted before its first token: it was never resent."""
        content = _blocks(message["content"])
        usage = mapping_of(message.get("usage"))
        if not content:
            return
        self._model = str(message.get("model") or self._model)
        answer = Answer(
            body={"role": "assistant", "content": content},
            source_id=source_id,
            at=at,
            model=str(message.get("model") or ""),
            usage=_usage(usage),
            response_id=id_of(message.get("responseId")),
            cost_microusd=microusd_of(mapping_of(usage.get("cost")).get("total")),
        )
        self._turns.answer(answer, [block["id"] for block in content if block["type"] == "tool_use"])


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    """Return the usage, whose parts are disjoint in pi's logs, or None for an aborted call."""
    return disjoint_usage(
        uncached=tokens_of(usage, "input"),
        read=tokens_of(usage, "cacheRead"),
        write=tokens_of(usage, "cacheWrite"),
        output=tokens_of(usage, "output"),
    )


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for part in content if (block := _block(part))]


def _block(part: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = part["type"]
    if kind == "toolCall":
        return {"type": "tool_use", "id": part["id"], "name": part["name"], "input": part["arguments"]}
    if kind == "thinking":
        block = {"type": "thinking", "thinking": part["thinking"]}
        if part.get("thinkingSignature"):
            block["signature"] = part["thinkingSignature"]
        return block
    if kind == "image":
        source = {"type": "base64", "media_type": part.get("mimeType"), "data": part.get("data")}
        return {"type": "image", "source": source}
    if kind == "text":
        return {"type": "text", "text": part["text"]} if part["text"] else None
    return dict(part)


def _tool_result(message: Mapping[str, Any]) -> dict[str, Any]:
    content = _blocks(message["content"])
    block = {"type": "tool_result", "tool_use_id": str(message["toolCallId"]), "content": content}
    return {**block, "is_error": True} if message.get("isError") else block


def _shell(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a shell command that the user ran, with its output, in the form that pi sends to the model."""
    if message.get("excludeFromContext"):
        return []
    text = f"Ran `{message['command']}`\n```\n{message.get('output') or '(no output)'}\n```"
    return [{"type": "text", "text": text}]
