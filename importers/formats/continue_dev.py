"""Sessions of Continue's extensions for VS Code and JetBrains, and of its CLI: one JSON document each.

The history contains the user's messages with the context that was added to them, and the answers with their
tool calls and results. It is converted to Anthropic's format. Continue logs no times.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from compaction.messages import Usage
from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.formats.traced_messages import parsed
from importers.jsonlines import Record, first_value, list_in, read_records, take_messages, values
from importers.turns import Answer, TurnBuilder, in_one_message
from importers.values import (
    arguments_of,
    embedded_file,
    list_of,
    mapping_of,
    request_of,
    text_of,
    title_of,
    tokens_of,
    usage_in_parts,
)

#: Titles of sessions without a name.
_DEFAULT_TITLES = ("New Session", "Untitled Session")

#: What Continue sends for calls without output.
_CANCELED, _NO_OUTPUT = "The user cancelled this tool call.", "No tool output"


class ContinueImporter:
    """Reads sessions of Continue."""

    name = "continue"
    label = "Continue session (JSON)"

    def recognizes(self, log: LogFile) -> bool:
        value = first_value(log)
        return (
            isinstance(value, Mapping)
            and isinstance(value.get("history"), list)
            and {"sessionId", "workspaceDirectory"} <= value.keys()
        )

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        reading = _Reading()
        yield from read_records(log, values(log), reading.take)
        yield from take_messages(log, reading.history, reading.take_item)
        yield reading.session(log)


class _Reading:
    """The state of reading one session."""

    def __init__(self) -> None:
        self._facts: Mapping[str, Any] = {}
        self.history: list[Any] = []
        self._turns = TurnBuilder(in_one_message)
        self._thinking: list[dict[str, Any]] = []  #: of the next answer
        self._first_words = self._model = ""
        self._compacted = ""  #: the beginning of the ids of items after a compaction by the CLI

    def take(self, record: Record) -> None:
        self.history = list_in(record.value, "history")
        self._facts = record.value

    def take_item(self, number: int, item: Mapping[str, Any]) -> None:
        """Read an item of the history. Messages of tools repeat the results in the item of their answer."""
        message, summary = item["message"], item.get("conversationSummary")
        if summary and message["role"] == "assistant" and message["content"] == summary:
            # The CLI puts it in the place of the history, and counts its items from there.
            self._compacted = f"compacted-{hashlib.sha256(str(summary).encode()).hexdigest()[:8]}-"
        source_id = str(message.get("id") or f"{self._compacted}item-{number}")
        match message["role"]:
            case "user":
                self._add_input(item, message, source_id)
            case "thinking":
                self._thinking += _thinking(message)
            case "assistant":
                self._add_answer(item, message, source_id)
        if summary and message["role"] != "assistant":
            self._add_summary(str(summary), f"{source_id}-summary")

    def session(self, log: LogFile) -> ImportedSession:
        facts = self._facts
        title = str(facts.get("title") or "")
        folder = str(facts.get("workspaceDirectory") or "").removeprefix("file://")
        return ImportedSession(
            external_id=str(facts.get("sessionId") or log.stem),
            format="anthropic",
            agent="continue",
            turns=self._turns.turns(),
            model=self._model or str(facts.get("chatModelTitle") or ""),
            title=title_of(self._first_words if title in _DEFAULT_TITLES else title or self._first_words),
            metadata={"cwd": folder} if folder else {},
        )

    def _add_input(self, item: Mapping[str, Any], message: Mapping[str, Any], source_id: str) -> None:
        own = _content(message["content"])
        context = [str(each.get("content") or "") for each in list_of(item.get("contextItems"))]
        content = [{"type": "text", "text": f"{text}\n"} for text in context if text.strip()] + own
        if content:
            body = {"role": "user", "content": content}
            self._turns.add(ImportedMessage(body=body, source_id=source_id))
            self._first_words = request_of(self._first_words, text_of(own))

    def _add_answer(self, item: Mapping[str, Any], message: Mapping[str, Any], source_id: str) -> None:
        usage, summary = mapping_of(message.get("usage")), item.get("conversationSummary")
        calls = [mapping_of(call) for call in list_of(message.get("toolCalls"))]
        reasoning = _thinking({"content": mapping_of(item.get("reasoning")).get("text")})
        blocks = [*self._thinking, *reasoning, *_content(message["content"]), *map(_tool_use, calls)]
        self._thinking = []
        if summary is None or message["content"] != summary:
            self._append(item, blocks, calls, usage, source_id)
        if summary:
            self._add_summary(str(summary), f"{source_id}-summary")

    def _append(
        self,
        item: Mapping[str, Any],
        blocks: list[dict[str, Any]],
        calls: list[Mapping[str, Any]],
        usage: Mapping[str, Any],
        source_id: str,
    ) -> None:
        """Add an answer and the results of its calls."""
        if not blocks:
            return
        self._model = str(usage.get("model") or self._model)
        answer = Answer(
            body={"role": "assistant", "content": blocks},
            source_id=source_id,
            model=self._model,
            usage=_usage(usage, self._model or str(self._facts.get("chatModelTitle") or "")),
        )
        self._turns.answer(answer, [str(call["id"]) for call in calls])
        states = [item.get("toolCallState"), *list_of(item.get("toolCallStates"))]
        found = {
            str(state["toolCallId"]): state for state in map(mapping_of, states) if "toolCallId" in state
        }
        for id in (str(call["id"]) for call in calls):
            body = {"role": "user", "content": [_result(id, found.get(id, {}))]}
            self._turns.result(id, ImportedMessage(body=body, source_id=f"{source_id}-{id}"))

    def _add_summary(self, text: str, source_id: str) -> None:
        """Add a summary of the conversation so far, which replaces it."""
        self._turns.compacted(ClientCompaction())
        body = {"role": "user", "content": [{"type": "text", "text": text}]}
        self._turns.add(ImportedMessage(body=body, source_id=source_id, is_meta=True, is_summary=True))


def _content(content: Any) -> list[dict[str, Any]]:
    """Return the content of a message as blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for part in list_of(content) if (block := _part(part))]


def _part(part: Mapping[str, Any]) -> dict[str, Any] | None:
    if part["type"] == "imageUrl":
        url = str(part["imageUrl"]["url"])
        if embedded := embedded_file(url):
            mime, data = embedded
            return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {"type": "text", "text": str(part["text"])} if part.get("text") else None


def _thinking(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    if message.get("redactedThinking"):
        return [{"type": "redacted_thinking", "data": str(message["redactedThinking"])}]
    text, signature = text_of(_content(message.get("content"))), message.get("signature")
    block = {"type": "thinking", "thinking": text}
    if signature:
        return [{**block, "signature": str(signature)}]
    return [block] if text else []


def _tool_use(call: Mapping[str, Any]) -> dict[str, Any]:
    function = mapping_of(call.get("function"))
    arguments = arguments_of(parsed(function.get("arguments")))
    return {
        "type": "tool_use",
        "id": str(call["id"]),
        "name": str(function.get("name") or ""),
        "input": arguments,
    }


def _result(id: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's result as Continue sends it."""
    output = [str(each.get("content") or "") for each in list_of(state.get("output"))]
    text = "\n\n".join(output) if output else _NO_OUTPUT
    if state.get("status") == "canceled":
        text = _CANCELED
    block = {"type": "tool_result", "tool_use_id": id, "content": text}
    return {**block, "is_error": True} if state.get("status") == "errored" else block


def _usage(usage: Mapping[str, Any], model: str) -> Usage | None:
    """Return the usage. The prompts of Anthropic's models do not include the cached tokens, others do."""
    details = mapping_of(usage.get("promptTokensDetails") or usage.get("prompt_tokens_details"))
    prompt = tokens_of(usage, "promptTokens", "prompt_tokens")
    read = tokens_of(details, "cachedTokens", "cached_tokens")
    write = tokens_of(details, "cacheWriteTokens", "cache_write_tokens")
    if "claude" in model.lower():
        prompt += read + write
    output = tokens_of(usage, "completionTokens", "completion_tokens")
    return usage_in_parts(prompt=prompt, read=read, write=write, output=output)
