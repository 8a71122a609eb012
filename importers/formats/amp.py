"""Threads of Amp: one JSON document each, as `amp threads export` prints and older versions store them.

The messages resemble those of Anthropic. The results of tool calls are in the next user message. Messages
with the role `info` are input too: commands that the user ran, and summaries of the messages before them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.jsonlines import Record, first_value, list_in, read_records, take_messages, values
from importers.turns import Answer, TurnBuilder, in_one_message
from importers.values import (
    arguments_of,
    disjoint_usage,
    json_text,
    list_of,
    mapping_of,
    request_of,
    text_of,
    time_of,
    title_of,
    tokens_of,
)

#: Beginning of the id of a thread.
_ID = "T-"


class AmpImporter:
    """Reads threads of Amp."""

    name = "amp"
    label = "Amp thread (JSON)"

    def recognizes(self, log: LogFile) -> bool:
        value = first_value(log)
        return (
            isinstance(value, Mapping)
            and str(value.get("id")).startswith(_ID)
            and isinstance(value.get("messages"), list)
        )

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        reading = _Reading()
        yield from read_records(log, values(log), reading.take)
        yield from take_messages(log, reading.messages, reading.take_message)
        yield reading.session(log)


class _Reading:
    """The state of reading one thread."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self._facts: Mapping[str, Any] = {}
        self._turns = TurnBuilder(in_one_message)
        self._first_words = self._model = ""

    def take(self, record: Record) -> None:
        self.messages = list_in(record.value, "messages")
        self._facts = record.value

    def take_message(self, number: int, message: Mapping[str, Any]) -> None:
        source_id = f"message-{message.get('messageId', number)}"
        parts = _parts(message["content"])
        content = [block for part in parts if (block := _block(part))]
        if not content:
            return
        if message["role"] == "assistant":
            self._add_answer(message, content, source_id)
        elif any(part["type"] == "summary" for part in parts):
            self._turns.compacted(ClientCompaction())
            body = {"role": "user", "content": content}
            self._turns.add(ImportedMessage(body=body, source_id=source_id, is_summary=True))
        else:
            self._add_input(message, content, source_id)

    def session(self, log: LogFile) -> ImportedSession:
        facts = self._facts
        return ImportedSession(
            external_id=str(facts.get("id") or log.stem),
            format="anthropic",
            agent="amp",
            turns=self._turns.turns(),
            model=self._model,
            title=title_of(str(facts.get("title") or "") or self._first_words),
            started_at=time_of(facts.get("created")),
            metadata=_metadata(mapping_of(mapping_of(facts.get("env")).get("initial"))),
        )

    def _add_input(self, message: Mapping[str, Any], content: list[dict[str, Any]], source_id: str) -> None:
        content.sort(key=lambda block: block["type"] != "tool_result")
        body = {"role": "user", "content": content}
        at = time_of(mapping_of(message.get("meta")).get("sentAt"))
        is_meta = message["role"] != "user"
        added = ImportedMessage(body=body, source_id=source_id, at=at, is_meta=is_meta)
        if content[0]["type"] == "tool_result":
            self._turns.result(content[0]["tool_use_id"], added)
        else:
            self._turns.add(added)
            if not is_meta:
                self._first_words = request_of(self._first_words, text_of(content))

    def _add_answer(self, message: Mapping[str, Any], content: list[dict[str, Any]], source_id: str) -> None:
        usage = mapping_of(message.get("usage"))
        self._model = str(usage.get("model") or self._model)
        answer = Answer(
            body={"role": "assistant", "content": content},
            source_id=source_id,
            at=time_of(usage.get("timestamp")),
            model=self._model,
            usage=disjoint_usage(
                uncached=tokens_of(usage, "inputTokens"),
                read=tokens_of(usage, "cacheReadInputTokens"),
                write=tokens_of(usage, "cacheCreationInputTokens"),
                output=tokens_of(usage, "outputTokens"),
            ),
        )
        self._turns.answer(answer, [block["id"] for block in content if block["type"] == "tool_use"])


def _parts(content: Any) -> list[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _block(part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a part in Anthropic's format, or None if it is empty. Unknown parts become their JSON."""
    match part["type"]:
        case "text":
            return {"type": "text", "text": part["text"]} if part["text"].strip() else None
        case "thinking":
            names = ("type", "thinking", "signature")
            return {name: part[name] for name in names if part.get(name)} if part["thinking"] else None
        case "tool_use":
            used = {"type": "tool_use", "id": str(part["id"]), "name": str(part["name"])}
            return {**used, "input": arguments_of(part.get("input"))}
        case "tool_result":
            return _result(str(part["toolUseID"]), mapping_of(part.get("run")))
        case "image":
            source = {name: value for name, value in part["source"].items() if name != "mediaType"}
            if media_type := part["source"].get("mediaType"):
                source["media_type"] = media_type
            return {"type": "image", "source": source}
        case "summary" if text := mapping_of(part["summary"]).get("summary"):
            return {"type": "text", "text": str(text)}
        case "redacted_thinking":
            return {"type": "redacted_thinking", "data": part["data"]}
    return {"type": "text", "text": json_text(part)}


def _result(call: str, run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a call. One that failed, or was canceled or rejected, has an error or a reason."""
    status = str(run.get("status") or "")
    block = {"type": "tool_result", "tool_use_id": call}
    if status == "done":
        return {**block, "content": json_text(run.get("result", ""))}
    error = run.get("error") or run.get("reason") or status
    words = mapping_of(error).get("message") or error
    return {**block, "content": json_text(words), "is_error": True}


def _metadata(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return the folder, its branch, and the version of the client."""
    tree = mapping_of(next(iter(list_of(environment.get("trees"))), None))
    found = {
        "cwd": unquote(str(tree.get("uri") or "").removeprefix("file://")),
        "git_branch": str(mapping_of(tree.get("repository")).get("ref") or "").removeprefix("refs/heads/"),
        "client_version": str(mapping_of(environment.get("platform")).get("clientVersion") or ""),
    }
    return {name: value for name, value in found.items() if value}
