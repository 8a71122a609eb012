"""goose sessions: an export (JSON), a session file of older versions (JSONL), or a session of its database.

All contain the session's facts, then its messages. An export is one document, the others have one record per
line. Messages are converted to Anthropic's format. Versions before July 2026 log usage only per session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.jsonlines import Record, first_value, list_in, read_records, take_messages, values
from importers.turns import Answer, TurnBuilder, in_one_message
from importers.values import (
    mapping_of,
    microusd_of,
    milliseconds_of,
    request_of,
    text_of,
    time_of,
    title_of,
    tokens_of,
    usage_with_cache,
)

#: The tokens of a whole session, which newer exports contain as `accumulated_usage`.
_TOKENS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_write_input_tokens")


class GooseImporter:
    """Reads goose sessions."""

    name = "goose"
    label = "goose session: export (JSON), session file (JSONL) or database"

    def recognizes(self, log: LogFile) -> bool:
        value = first_value(log)
        return isinstance(value, dict) and "working_dir" in value and "role" not in value

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        reading = _Reading()
        yield from read_records(log, values(log), reading.take)
        yield from take_messages(log, reading.exported, reading.take_message)
        yield reading.session(log)


class _Reading:
    """The state of reading one session."""

    def __init__(self) -> None:
        self._facts: Mapping[str, Any] = {}
        self.exported: list[Any] = []
        self._turns = TurnBuilder(in_one_message)
        self._first_words = ""
        self._model = ""
        self._count = 0
        self._is_compacted = False
        self._answer: Answer | None = None  #: the response that may still get parts

    def take(self, record: Record) -> None:
        """Read the session's facts, a message, or the whole export."""
        value = record.value
        if not isinstance(value, dict):
            raise TypeError("not an object")
        if "role" in value:
            self.take_message(0, value)
            return
        self._facts = self._facts or value
        if conversation := value.get("conversation"):
            is_list = isinstance(conversation, list)
            self.exported = conversation if is_list else list_in(conversation, "messages")

    def session(self, log: LogFile) -> ImportedSession:
        facts = self._facts
        model = mapping_of(facts.get("model_config") or facts.get("model_config_json")).get("model_name")
        parent = facts.get("parent_session_id")
        title = str(facts.get("name") or facts.get("description") or "")
        return ImportedSession(
            external_id=f"goose-{facts.get('id') or log.stem}",
            parent_external_id=f"goose-{parent}" if parent else None,
            format="anthropic",
            agent="goose",
            turns=self._turns.turns(),
            model=str(model or self._model),
            title=title_of(title) or title_of(self._first_words),
            started_at=time_of(facts.get("created_at")),
            metadata=_metadata(facts),
        )

    def take_message(self, _: int, message: Mapping[str, Any]) -> None:
        """Read a message.

        A compaction hides the earlier messages from the agent, and adds a summary that the user does not see.
        Others that the agent does not see, such as the output of a command, are not followed by one.
        """
        self._count += 1
        metadata = mapping_of(message.get("metadata") or message.get("metadata_json"))
        content = message.get("content") or message.get("content_json") or []
        blocks = [block for part in content if (block := _block(part))]
        is_compacted = metadata.get("agentVisible") is False
        is_inserted = metadata.get("userVisible") is False and not is_compacted
        if not blocks:
            return
        is_summary = self._is_compacted and is_inserted
        self._is_compacted = is_compacted
        if is_summary:
            self._turns.compacted(ClientCompaction())
            self._answer = None
        inference = mapping_of(metadata.get("inference"))
        self._model = str(inference.get("resolvedModel") or inference.get("requestedModel") or self._model)
        source_id = str(message.get("message_id") or message.get("id") or f"message-{self._count}")
        at = time_of(message.get("created") or message.get("created_timestamp"))
        if message["role"] == "assistant":
            self._add_answer(blocks, Answer(body={}, source_id=source_id, at=at, is_summary=is_summary))
            self._note_usage(mapping_of(metadata.get("usage")), source_id)
            return
        self._add_input(
            ImportedMessage(
                body={"role": "user", "content": blocks},
                source_id=source_id,
                at=at,
                is_meta=is_inserted,
                is_summary=is_summary,
            )
        )

    def _add_answer(self, blocks: list[dict[str, Any]], answer: Answer) -> None:
        """Add a part of a response, which consists of all consecutive messages of the model."""
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if self._answer:
            self._answer.body["content"].extend(blocks)
            self._turns.called(self._answer, calls)
            return
        answer.body, answer.model = {"role": "assistant", "content": blocks}, self._model
        self._turns.answer(answer, calls)
        self._answer = answer

    def _note_usage(self, usage: Mapping[str, Any], source_id: str) -> None:
        """Set the usage of a response, which its last message contains. A copied session has the same ids."""
        answer = self._answer
        if answer is None or not (found := usage_with_cache(usage)):
            return
        answer.usage, answer.response_id = found, f"goose-{source_id}"
        answer.cost_microusd = microusd_of(usage.get("cost")) or None
        answer.first_token_ms = milliseconds_of(usage.get("timeToFirstTokenMs"))
        answer.duration_ms = milliseconds_of(usage.get("elapsedMs"))
        self._answer = None

    def _add_input(self, message: ImportedMessage) -> None:
        self._answer = None
        blocks = message.body["content"]
        calls = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if calls:
            self._turns.result(calls[0], message)
            return
        self._turns.add(message)
        if not message.is_meta:
            self._first_words = request_of(self._first_words, text_of(blocks))


def _metadata(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the folder, and the tokens and the cost of the whole session."""
    usage = mapping_of(facts.get("accumulated_usage"))
    counts = {name: tokens_of(usage, name) or tokens_of(facts, f"accumulated_{name}") for name in _TOKENS}
    found = {
        "cwd": facts.get("working_dir"),
        **counts,
        "cost_microusd": microusd_of(facts.get("accumulated_cost")),
    }
    return {name: value for name, value in found.items() if value}


def _block(part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a part of a message as a content block, or None if the model does not see it."""
    if not _is_for_model(part):
        return None
    match part["type"]:
        case "text":
            return {"type": "text", "text": part["text"]} if part["text"] else None
        case "thinking":
            block = {"type": "thinking", "thinking": part["thinking"]}
            return {**block, "signature": part["signature"]} if part.get("signature") else block
        case "reasoning":  # of older versions
            return {"type": "thinking", "thinking": part["text"]} if part.get("text") else None
        case "redactedThinking":
            return {"type": "redacted_thinking", "data": part["data"]}
        case "image" | "document" as kind:
            source = {"type": "base64", "media_type": part.get("mimeType"), "data": part["data"]}
            return {"type": kind, "source": source}
        case "toolRequest" | "frontendToolRequest":
            call = mapping_of(part["toolCall"].get("value"))
            name, arguments = str(call.get("name") or "invalid"), mapping_of(call.get("arguments"))
            return {"type": "tool_use", "id": str(part["id"]), "name": name, "input": arguments}
        case "toolResponse":
            return _tool_result(part)
    return None


def _tool_result(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's result. In older versions, its value is the list of contents."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": str(part["id"])}
    result = part["toolResult"]
    if result.get("status") == "error":
        return {**block, "content": str(result.get("error") or ""), "is_error": True}
    value = result.get("value")
    contents = value if isinstance(value, list) else mapping_of(value).get("content") or []
    block["content"] = [found for each in contents if (found := _content(each))]
    return {**block, "is_error": True} if mapping_of(value).get("isError") else block


def _content(part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a content of a tool's result, unless it is only for the user."""
    if not _is_for_model(part):
        return None
    if part.get("type") == "resource":
        resource = mapping_of(part.get("resource"))
        return {"type": "text", "text": str(resource.get("text") or resource.get("uri") or "")}
    if part.get("type") in ("text", "image"):
        return _block(part)
    return {"type": "text", "text": orjson.dumps(part).decode()}


def _is_for_model(part: Mapping[str, Any]) -> bool:
    audience = mapping_of(part.get("annotations")).get("audience")
    return not isinstance(audience, list) or "assistant" in audience
