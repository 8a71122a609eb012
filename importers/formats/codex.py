"""Codex rollouts: one JSON object per line, in `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`.

There are three generations: lines `{timestamp, type, payload}`; before September 2025, plain items after a
first line with the session's id; and, from the first client, a `.json` document `{session, items}`. The items
are those of OpenAI's Responses API, and each is one message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson

from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.jsonlines import first_objects, first_value, read_records, values
from importers.turns import Answer, TurnBuilder
from importers.values import (
    id_of,
    mapping_of,
    request_of,
    text_of,
    time_of,
    title_of,
    tokens_of,
    usage_in_parts,
)

#: A message of another agent, as some versions log it, and the usage of a response with its id.
_COMMUNICATION, _USAGE = "inter_agent_communication", "token_usage_record"
_LINES = (
    "session_meta",
    "turn_context",
    "response_item",
    "event_msg",
    "compacted",
    _COMMUNICATION,
    _USAGE,
)
#: Beginning of the mark of an assistant message that the client only logs; no prompt contains it.
_DELIVERY = "codex:code-mode-delivery:"
#: Fields of items that are only in logs.
_LOGGED_ONLY = frozenset(
    {"timestamp", "record_type", "end_turn", "internal_chat_message_metadata_passthrough"}
)

#: Items that the model writes, other than messages.
_ANSWERS = (
    "reasoning",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "web_search_call",
    "image_generation_call",
    "tool_search_call",
    "tool_search_output",  # unless the client runs the search
)
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
#: A message of another agent, which is input like those of the user.
_AGENT_MESSAGE = "agent_message"
_ITEMS = ("message", _AGENT_MESSAGE, *_ANSWERS, *_OUTPUTS)
#: Names of the summary by the provider, which is encrypted.
_COMPACTIONS = ("compaction", "compaction_summary", "context_compaction")
#: The origin of a session: keys of `git` and of the metadata.
_GIT = {"repository_url": "repository", "branch": "git_branch"}

#: Prefixes of user messages that the client inserted.
_META_OPENINGS = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
)


class CodexImporter:
    """Reads Codex rollouts."""

    name = "codex"
    label = "Codex rollout (JSONL)"

    def recognizes(self, log: LogFile) -> bool:
        lines = first_objects(log, 5)
        if any(line.get("type") in _LINES and isinstance(line.get("payload"), dict) for line in lines):
            return True
        if lines and {"id", "timestamp", "instructions"} <= lines[0].keys():
            return True
        value = first_value(log) if log.data[:1] == b"{" else None
        return isinstance(value, dict) and {"session", "items"} <= value.keys()

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        rollout = _Rollout()
        yield from read_records(log, values(log), lambda record: rollout.take(record.line, record.value))
        yield rollout.session(log)


class _Rollout:
    """One session while its lines are read."""

    def __init__(self) -> None:
        self._turns = TurnBuilder()
        self._meta: Mapping[str, Any] = {}
        self._answer: Answer | None = None  #: the response that may still get parts
        self._unreported: Answer | None = None  #: the response whose usage has not been read yet
        self._total: Any = None
        self._compacted_at: int | None = None
        self._model = ""
        self._window: int | None = None
        self._first_words = ""
        self._started_at: datetime | None = None

    def take(self, line: int, record: Mapping[str, Any]) -> None:
        """Read one line of any generation."""
        if "items" in record and "session" in record:
            self._take_document(record)
            return
        at = time_of(record.get("timestamp"))
        self._started_at = self._started_at or at
        kind = record.get("type")
        if kind in _LINES:
            if not isinstance(record["payload"], Mapping):
                raise TypeError("`payload` is not an object")
            metadata = mapping_of(record.get("metadata"))
            if not str(metadata.get("delivered_assistant_message")).startswith(_DELIVERY):
                self._take_line(line, kind, record["payload"], at)
        elif kind in _ITEMS:
            self._take_item(line, record, at)
        elif "id" in record and "instructions" in record:
            self._meta = self._meta or record

    def session(self, log: LogFile) -> ImportedSession:
        meta = self._meta
        spawn = mapping_of(mapping_of(mapping_of(meta.get("source")).get("subagent")).get("thread_spawn"))
        instructions = mapping_of(meta.get("base_instructions")).get("text") or meta.get("instructions")
        git = mapping_of(meta.get("git"))
        names = {"cwd": "cwd", "cli_version": "client_version", "forked_from_id": "forked_from"}
        return ImportedSession(
            external_id=str(meta.get("id") or log.stem),
            parent_external_id=id_of(spawn.get("parent_thread_id")),
            format="openai-responses",
            agent="codex",
            turns=self._turns.turns(),
            model=self._model,
            title=title_of(self._first_words),
            started_at=self._started_at,
            context_window=self._window,
            system=instructions if isinstance(instructions, str) else None,
            metadata={names[key]: meta[key] for key in names if meta.get(key)}
            | {name: git[key] for key, name in _GIT.items() if isinstance(git.get(key), str)},
        )

    def _take_document(self, document: Mapping[str, Any]) -> None:
        self._meta = mapping_of(document["session"])
        self._started_at = time_of(self._meta.get("timestamp"))
        for number, item in enumerate(document["items"], start=1):
            if item.get("type", "message") in _ITEMS:
                self._take_item(number, {"type": "message", **item}, None)

    def _take_line(self, line: int, kind: str, payload: Mapping[str, Any], at: datetime | None) -> None:
        if kind == "session_meta":
            self._meta = self._meta or payload  # a fork repeats the line of its origin after its own
        elif kind == "turn_context":
            self._model = str(payload.get("model") or self._model)
        elif kind == "compacted":
            self._take_compaction(line, payload, at)
        elif kind == "response_item" and payload.get("type") in _ITEMS:
            self._take_item(line, payload, at)
        elif kind == _COMMUNICATION:
            self._take_item(line, _agent_message(payload), at)
        elif kind == _USAGE:
            self._take_response_usage(payload)
        elif kind == "event_msg" and payload.get("type") == "token_count":
            self._take_usage(mapping_of(payload.get("info")))
        elif kind == "event_msg" and payload.get("type") == "turn_aborted":
            self._unreported = self._answer = None  # later usage is that of other calls

    def _take_item(self, line: int, item: Mapping[str, Any], at: datetime | None) -> None:
        kind, body = item["type"], _body(item)
        message = ImportedMessage(body=body, source_id=f"line-{line}", at=at)
        if kind in _OUTPUTS or (kind == "tool_search_output" and item.get("execution") == "client"):
            self._answer = None
            self._turns.result(str(body["call_id"]), message)
        elif kind == _AGENT_MESSAGE or (kind == "message" and item["role"] != "assistant"):
            self._take_input(message, text_of(item["content"]))
        else:
            answer = self._response(message)
            if kind.endswith("_tool_call") or kind in (
                "function_call",
                "local_shell_call",
                "tool_search_call",
            ):
                self._turns.called(answer, [str(body.get("call_id") or body.get("id") or "")])

    def _take_input(self, message: ImportedMessage, words: str) -> None:
        self._answer = None
        is_meta = message.body.get("role") != "user" or words.lstrip().startswith(_META_OPENINGS)
        self._turns.add(replace(message, is_meta=is_meta))
        if not is_meta:
            self._first_words = request_of(self._first_words, words)

    def _response(self, message: ImportedMessage) -> Answer:
        """Add an item to its response: the open one, or a new one."""
        if self._answer is not None:
            self._answer.items.append(message)
            return self._answer
        self._answer = Answer(
            body=dict(message.body), source_id=message.source_id, at=message.at, model=self._model
        )
        self._turns.answer(self._answer)
        self._unreported = self._answer
        return self._answer

    def _take_response_usage(self, record: Mapping[str, Any]) -> None:
        """Read the usage of the last response and its id, which newer versions log before `token_count`."""
        if self._unreported and (response_id := id_of(record.get("response_id"))):
            self._report(self._unreported, mapping_of(record.get("usage")), response_id)

    def _take_usage(self, info: Mapping[str, Any]) -> None:
        """Read the usage of the last response. The client writes it again when the rate limits change."""
        total = info.get("total_token_usage")
        self._window = tokens_of(info, "model_context_window") or self._window
        if self._unreported and total != self._total:
            # Forks copy lines, so without a response id, the content and the running total identify it.
            bodies = [message.body for message in self._unreported.messages()]
            digest = hashlib.sha256(orjson.dumps([bodies, total])).hexdigest()
            usage = mapping_of(info.get("last_token_usage"))
            self._report(self._unreported, usage, f"codex-{digest[:24]}")
        self._total = total

    def _report(self, answer: Answer, usage: Mapping[str, Any], response_id: str) -> None:
        answer.response_id = response_id
        answer.usage = usage_in_parts(
            prompt=tokens_of(usage, "input_tokens"),
            read=tokens_of(usage, "cached_input_tokens"),
            write=tokens_of(usage, "cache_write_input_tokens"),
            output=tokens_of(usage, "output_tokens"),
        )
        self._unreported = self._answer = None

    def _take_compaction(self, line: int, payload: Mapping[str, Any], at: datetime | None) -> None:
        """Read a compaction: the client continued with the summary and some earlier user messages."""
        self._unreported = self._answer = None
        self._turns.compacted(ClientCompaction(tokens_before=None))
        for item in payload.get("replacement_history") or ():
            if isinstance(item, Mapping) and item.get("type") in _COMPACTIONS:
                self._add_summary(line, {**_body(item), "type": "compaction"}, at)
        if summary := payload.get("message"):
            self._add_summary(line, {"type": "message", "role": "user", "content": str(summary)}, at)

    def _add_summary(self, line: int, body: Mapping[str, Any], at: datetime | None) -> None:
        self._turns.add(ImportedMessage(body=body, source_id=f"line-{line}", at=at, is_summary=True))


def _agent_message(communication: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the item with which the client sends a message of another agent to the model."""
    author, recipient = str(communication["author"]), str(communication["recipient"])
    content = [{"type": "input_text", "text": str(communication.get("content") or "")}]
    if encrypted := communication.get("encrypted_content"):
        kind = "NEW_TASK" if communication.get("trigger_turn") else "MESSAGE"
        text = f"Message Type: {kind}\nTask name: {recipient}\nSender: {author}\nPayload:\n"
        content = [
            {"type": "input_text", "text": text},
            {"type": "encrypted_content", "encrypted_content": str(encrypted)},
        ]
    return {"type": _AGENT_MESSAGE, "author": author, "recipient": recipient, "content": content}


def _body(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item as requests contain it. Older clients log an output as `{content, success}`."""
    body = {name: value for name, value in item.items() if value is not None and name not in _LOGGED_ONLY}
    output = body.get("output")
    if isinstance(output, Mapping):
        body["output"] = output.get("content") or orjson.dumps(output).decode()
    if isinstance(body.get("content"), list) and item["type"] == "message":
        kind = "output_text" if item.get("role") == "assistant" else "input_text"
        body["content"] = [{"type": kind, **part} for part in body["content"]]
    return body
