"""Threads of Zed's agent from its database, one record each, as read by `importers/databases.py`.

The messages of a thread are in Zed's own format, which is converted to Anthropic's. Older versions have a
different format. Zed logs usage only for the last call of each request, and no times of messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from compaction.messages import Usage
from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.jsonlines import Record, first_value, list_in, read_records, take_messages, values
from importers.turns import Answer, TurnBuilder, in_one_message
from importers.values import (
    arguments_of,
    disjoint_usage,
    list_of,
    mapping_of,
    request_of,
    text_of,
    time_of,
    title_of,
    tokens_of,
)

#: Fields that only threads have, of which each version has one at least.
_FIELDS = {"cumulative_token_usage", "request_token_usage", "initial_project_snapshot"}

#: What Zed sends to continue, and in place of an empty result.
_RESUME = "Continue where you left off"
_EMPTY = "<Tool returned an empty string>"

Blocks = list[dict[str, Any]]


class ZedImporter:
    """Reads threads of Zed's agent."""

    name = "zed"
    label = "Zed agent thread: database"

    def recognizes(self, log: LogFile) -> bool:
        value = first_value(log)
        return (
            isinstance(value, dict)
            and isinstance(value.get("messages"), list)
            and "updated_at" in value
            and not _FIELDS.isdisjoint(value)
        )

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        reading = _Reading()
        yield from read_records(log, values(log), reading.take)
        yield from take_messages(log, reading.messages, reading.add)
        yield reading.session(log)


class _Reading:
    """The state of reading one thread."""

    def __init__(self) -> None:
        self._thread: Mapping[str, Any] = {}
        self.messages: list[Any] = []
        self._turns = TurnBuilder(in_one_message)
        self._usage: Usage | None = None  #: of the last call of the current request
        self._answer: Answer | None = None  #: the last answer of the current request
        self._first_words = ""

    def take(self, record: Record) -> None:
        """Read the thread."""
        self._thread, self.messages = record.value, list_in(record.value, "messages")

    def add(self, number: int, message: Any) -> None:
        """Add a message, which is an object with its kind as the only key, or a word."""
        source_id = f"message-{number}"
        if message == "Resume":
            self._add_input([{"type": "text", "text": _RESUME}], source_id, is_meta=True)
        elif "role" in message:
            self._add_old(message, source_id, number)
        elif "User" in message:
            self._end_request()
            body = message["User"]
            self._usage = _usage(mapping_of(self._thread.get("request_token_usage")).get(str(body.get("id"))))
            self._add_input(_typed(body["content"]), source_id)
        elif "Agent" in message:
            body = message["Agent"]
            results = mapping_of(body.get("tool_results"))
            self._add_answer([_block(part) for part in body["content"]], list(results.values()), source_id)
        elif summary := mapping_of(message["Compaction"]).get("Summary"):
            self._turns.compacted(ClientCompaction())
            self._add_input([{"type": "text", "text": str(summary)}], source_id, is_summary=True)

    def _add_old(self, message: Mapping[str, Any], source_id: str, number: int) -> None:
        """Add a message of an older version, in the oldest of which results are messages of the user."""
        segments = message.get("segments") or [{"type": "text", "text": message.get("text") or ""}]
        blocks = [block for each in segments if (block := _segment(each))]
        results = list_of(message.get("tool_results"))
        usages = list_of(self._thread.get("request_token_usage"))
        if message["role"] == "assistant":
            calls = [_call(call) for call in list_of(message.get("tool_uses"))]
            self._usage = _usage(usages[number - 1]) if number <= len(usages) else None
            self._add_answer([*blocks, *calls], results, source_id)
            self._end_request()
        elif results:
            self._add_results(results, source_id)
        elif message["role"] == "user":
            context = str(message.get("context") or "")
            self._add_input([*([{"type": "text", "text": context}] if context else []), *blocks], source_id)

    def _add_input(
        self, blocks: Blocks, source_id: str, *, is_meta: bool = False, is_summary: bool = False
    ) -> None:
        if not blocks:
            return
        body = {"role": "user", "content": blocks}
        self._turns.add(
            ImportedMessage(body=body, source_id=source_id, is_meta=is_meta, is_summary=is_summary)
        )
        if not is_meta and not is_summary:
            self._first_words = request_of(self._first_words, text_of(blocks))

    def _add_answer(
        self, blocks: Sequence[dict[str, Any] | None], results: list[Any], source_id: str
    ) -> None:
        found = [block for block in blocks if block]
        if found:
            calls = [block["id"] for block in found if block["type"] == "tool_use"]
            body = {"role": "assistant", "content": found}
            self._answer = Answer(body=body, source_id=source_id, model=self._model())
            self._turns.answer(self._answer, calls)
        self._add_results(results, source_id)

    def _add_results(self, results: list[Any], source_id: str) -> None:
        for result in results:
            call = str(result["tool_use_id"])
            body = {"role": "user", "content": [_result(result)]}
            self._turns.result(call, ImportedMessage(body=body, source_id=f"{source_id}-{call}"))

    def _end_request(self) -> None:
        if self._answer:
            self._answer.usage = self._usage
        self._answer = self._usage = None

    def _model(self) -> str:
        return str(mapping_of(self._thread.get("model")).get("model") or "")

    def session(self, log: LogFile) -> ImportedSession:
        self._end_request()
        thread = self._thread
        parent = thread.get("parent_id") or mapping_of(thread.get("subagent_context")).get("parent_thread_id")
        folders = str(thread.get("folder_paths") or "").splitlines()
        return ImportedSession(
            external_id=f"zed-{thread.get('id') or log.stem}",
            parent_external_id=f"zed-{parent}" if parent else None,
            format="anthropic",
            agent="zed",
            turns=self._turns.turns(),
            model=self._model(),
            title=title_of(str(thread.get("title") or thread.get("summary") or ""))
            or title_of(self._first_words),
            started_at=time_of(thread.get("created_at") or thread.get("updated_at")),
            metadata={"cwd": folders[0]} if folders else {},
        )


def _typed(content: Sequence[Any]) -> Blocks:
    """Return the blocks of a user's message. What is mentioned follows the text in a list of attachments."""
    blocks: Blocks = []
    attached = []
    for part in content:
        if "Mention" in part:
            kind, facts = next(iter(mapping_of(part["Mention"].get("uri")).items()), ("file", {}))
            path = str(mapping_of(facts).get("abs_path") or mapping_of(facts).get("url") or "")
            name = str(mapping_of(facts).get("name") or unquote(path.rsplit("/", 1)[-1]) or kind)
            blocks.append({"type": "text", "text": f"[@{name}]({path})"})
            if words := str(part["Mention"].get("content") or ""):
                attached.append(f"{path or name}\n{words}")
        elif block := _block(part):
            blocks.append(block)
    if attached:
        words = "\n\n".join(attached)
        blocks.append({"type": "text", "text": f"<context>\n{words}\n</context>"})
    return blocks


def _block(part: Mapping[str, Any]) -> dict[str, Any] | None:
    [(kind, value)] = part.items()
    match kind:
        case "Text":
            return {"type": "text", "text": str(value)} if value else None
        case "Thinking":
            return _thinking(value)
        case "RedactedThinking":
            return {"type": "redacted_thinking", "data": value}
        case "ToolUse":
            return _call(value)
        case "Image":
            source = {"type": "base64", "media_type": "image/png", "data": str(value["source"])}
            return {"type": "image", "source": source}
    raise TypeError(f"unknown part {kind}")


def _segment(part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a part of a message of an older version."""
    if part["type"] == "text":
        return {"type": "text", "text": str(part["text"])} if part["text"] else None
    return _thinking(part) if part["type"] == "thinking" else None


def _thinking(value: Mapping[str, Any]) -> dict[str, Any] | None:
    if not value["text"] and not value.get("signature"):
        return None
    block = {"type": "thinking", "thinking": str(value["text"])}
    return {**block, "signature": str(value["signature"])} if value.get("signature") else block


def _call(value: Mapping[str, Any]) -> dict[str, Any]:
    arguments = arguments_of(value.get("input"))
    return {"type": "tool_use", "id": str(value["id"]), "name": str(value["name"]), "input": arguments}


def _result(value: Mapping[str, Any]) -> dict[str, Any]:
    content = value.get("content")
    parts = content if isinstance(content, list) else [content]
    blocks = [block for part in parts if (block := _content(part))] or [{"type": "text", "text": _EMPTY}]
    block = {"type": "tool_result", "tool_use_id": str(value["tool_use_id"]), "content": blocks}
    return {**block, "is_error": True} if value.get("is_error") else block


def _content(part: Any) -> dict[str, Any] | None:
    """Return a part of a result: text, or an object with its kind as its only key or as its type."""
    if isinstance(part, Mapping) and "type" in part:
        part = {str(part["type"]).capitalize(): part.get("text") or part}
    return _block({"Text": part} if not isinstance(part, Mapping) else part)


def _usage(counts: Any) -> Usage | None:
    found = mapping_of(counts)
    return disjoint_usage(
        uncached=tokens_of(found, "input_tokens"),
        read=tokens_of(found, "cache_read_input_tokens"),
        write=tokens_of(found, "cache_creation_input_tokens"),
        output=tokens_of(found, "output_tokens"),
    )
