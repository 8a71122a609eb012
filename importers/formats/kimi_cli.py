"""Kimi CLI sessions: a folder with the messages (`context.jsonl`) and the events (`wire.jsonl`).

A compaction renames `context.jsonl` to `context_1.jsonl`. The new file begins with the summary and the last
messages of the old one. The events contain times and usage. `importers/folders.py` joins the files of a
session; `context.jsonl` alone is also a log. Messages are in OpenAI's chat format with parts for reasoning,
and are converted to Anthropic's format, which can represent all of them. Kimi CLI does not log the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compaction.messages import Usage
from compaction.prefixes import common_length
from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.calls import conversation_id
from importers.formats.traced_messages import parsed
from importers.jsonlines import Record, first_objects, objects, read_records, take_messages
from importers.turns import Answer, TurnBuilder, in_one_message
from importers.values import (
    arguments_of,
    disjoint_usage,
    embedded_file,
    list_of,
    mapping_of,
    request_of,
    text_of,
    time_of,
    title_of,
    tokens_of,
)

#: Name of the file with the messages, without its suffix. It is the same for all sessions.
CONTEXT = "context"

#: Roles of records that are not messages.
_FACTS = ("_system_prompt", "_checkpoint", "_usage")

#: The beginning of a summary, of messages that Kimi CLI inserts, and of the result of a failed tool.
_SUMMARY = "<system>Previous context has been compacted"
_INSERTED = ("<system>", "<system-reminder>", "<notification")
_ERROR = "<system>ERROR:"

_FOLDER = re.compile(r"current working directory is `([^`\n]+)`")


class KimiCliImporter:
    """Reads sessions of Kimi CLI."""

    name = "kimi-cli"
    label = "Kimi CLI session (folder, or context.jsonl)"

    def recognizes(self, log: LogFile) -> bool:
        return any(record.get("role") in _FACTS for record in first_objects(log, 5))

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        reading = _Reading()
        yield from read_records(log, objects(log), reading.take)
        yield from take_messages(log, reading.entries(), reading.add)
        yield reading.session(log)


class _Step:
    """One model call in the events. Its usage follows its content."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: list[str] = []
        self.at: Any = None
        self.usage: Usage | None = None
        self.id: str | None = None


class _Reading:
    """The state of reading one session."""

    def __init__(self) -> None:
        self._contexts: list[list[Mapping[str, Any]]] = []  #: the messages of each file
        self._sizes: list[int] = []  #: the tokens at the end of each file
        self._system = ""
        self._facts: Mapping[str, Any] = {}
        self._turns = TurnBuilder(in_one_message)
        self._bodies: list[dict[str, Any]] = []
        self._step: _Step | None = None  #: the call that has not ended yet
        self._steps: dict[tuple[str, ...], list[_Step]] = {}  #: by what identifies their answer
        self._result_times: dict[str, Any] = {}
        self._input_times: dict[str, list[Any]] = {}
        self._started: Any = None
        self._window: int | None = None
        self._first_words = ""

    def take(self, record: Record) -> None:
        """Read a record of any of the files."""
        value = record.value
        if "role" in value:
            self._take_context(value)
        elif "message" in value:
            event = value["message"]
            self._take_event(event["type"], mapping_of(event.get("payload")), value.get("timestamp"))
        elif value.get("type") != "metadata":
            self._facts = value  # of the session or the sub-agent

    def _take_context(self, value: Mapping[str, Any]) -> None:
        role = value["role"]
        if role == "_system_prompt":
            self._system = str(value.get("content") or "")
        is_start = role == "_system_prompt" or (role == "_checkpoint" and value.get("id") == 0)
        if not self._contexts or (is_start and self._contexts[-1]):
            self._contexts.append([])
            self._sizes.append(0)
        if role == "_usage":
            self._sizes[-1] = tokens_of(value, "token_count")
        elif role not in _FACTS:
            self._contexts[-1].append(value)

    def _take_event(self, kind: str, payload: Mapping[str, Any], at: Any) -> None:
        self._started = self._started or at
        if kind in ("TurnBegin", "SteerInput"):
            self._input_times.setdefault(_text(payload.get("user_input")), []).append(at)
        elif kind == "StepBegin":
            self._step = _Step()
        elif kind == "ToolResult":
            self._result_times[str(payload.get("tool_call_id"))] = at
        elif self._step:
            self._take_answer(self._step, kind, payload, at)

    def _take_answer(self, step: _Step, kind: str, payload: Mapping[str, Any], at: Any) -> None:
        if kind == "ContentPart" and payload.get("type") == "text":
            step.text += str(payload.get("text") or "")
        elif kind == "ToolCall":
            step.calls.append(str(payload.get("id")))
        elif kind == "StatusUpdate" and payload.get("message_id"):
            step.at, step.id = at, str(payload["message_id"])
            step.usage = _usage(mapping_of(payload.get("token_usage")))
            self._window = tokens_of(payload, "max_context_tokens") or self._window
            self._steps.setdefault(_identity(step.text, step.calls), []).append(step)
            self._step = None

    def entries(self) -> Iterator[Mapping[str, Any] | ClientCompaction]:
        """Yield the messages that each file adds, and the compactions.

        A file that begins like the one before it continues an earlier state of it: its messages are kept in
        chronological order.
        """
        previous: list[Mapping[str, Any]] = []
        size = 0
        for messages, next_size in zip(self._contexts, self._sizes, strict=True):
            kept = common_length(previous, messages)
            if previous and messages and not kept:
                yield ClientCompaction(tokens_before=size or None)
                yield messages[0]
                kept = 1 + _preserved(previous, messages)
            yield from messages[kept:]
            previous, size = messages or previous, next_size or size

    def add(self, number: int, entry: Mapping[str, Any] | ClientCompaction) -> None:
        """Add a message or a compaction."""
        if isinstance(entry, ClientCompaction):
            self._turns.compacted(entry)
            return
        role, source_id = entry["role"], f"message-{number}"
        blocks = content_blocks(entry.get("content"))
        if role == "assistant":
            self._add_answer([*blocks, *map(_call, list_of(entry.get("tool_calls")))], source_id)
        elif role == "tool":
            self._add_result(str(entry.get("tool_call_id") or ""), blocks, source_id)
        elif blocks:
            self._add_input(blocks, source_id)

    def _add_input(self, blocks: list[dict[str, Any]], source_id: str) -> None:
        words = text_of(blocks)
        is_summary = words.startswith(_SUMMARY)
        is_meta = words.startswith(_INSERTED) and not is_summary
        times = self._input_times.get(words)
        body = {"role": "user", "content": blocks}
        self._bodies.append(body)
        self._turns.add(
            ImportedMessage(
                body=body,
                source_id=source_id,
                at=time_of(times.pop(0)) if times else None,
                is_meta=is_meta,
                is_summary=is_summary,
            )
        )
        if not is_meta and not is_summary:
            self._first_words = request_of(self._first_words, words)

    def _add_answer(self, blocks: list[dict[str, Any]], source_id: str) -> None:
        if not blocks:
            return
        body = {"role": "assistant", "content": blocks}
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        answer = Answer(body=body, source_id=source_id, model=self._model())
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        if steps := self._steps.get(_identity(text, calls)):
            step = steps.pop(0)
            answer.at, answer.usage, answer.response_id = time_of(step.at), step.usage, step.id
        self._turns.answer(answer, calls)

    def _add_result(self, call: str, blocks: list[dict[str, Any]], source_id: str) -> None:
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": blocks}
        if text_of(blocks).startswith(_ERROR):
            result["is_error"] = True
        body = {"role": "user", "content": [result]}
        at = time_of(self._result_times.get(call))
        self._turns.result(call, ImportedMessage(body=body, source_id=source_id, at=at))

    def _model(self) -> str:
        spec = mapping_of(self._facts.get("launch_spec"))
        return str(spec.get("effective_model") or spec.get("model_override") or "")

    def session(self, log: LogFile) -> ImportedSession:
        folder = log.path.parent
        parent = folder.parent.parent.name if folder.parent.name == "subagents" else ""
        name = log.stem
        if log.stem.startswith(f"{CONTEXT}_sub") and folder.name:  # a sub-agent of an older version
            parent, name = folder.name, log.stem.removeprefix(f"{CONTEXT}_")
        elif log.stem.startswith(CONTEXT):
            name = f"{folder.name}{log.stem.removeprefix(CONTEXT)}" if folder.name else ""
        found = _FOLDER.search(self._system)
        title = self._facts.get("custom_title") or self._facts.get("description")
        return ImportedSession(
            external_id=(f"{parent}:agent-{name}" if parent else name)
            or f"kimi-{conversation_id(self._bodies)}",
            parent_external_id=parent or None,
            format="anthropic",
            agent="kimi-cli",
            turns=self._turns.turns(),
            model=self._model(),
            title=title_of(str(title or "")) or title_of(self._first_words),
            started_at=time_of(self._started),
            context_window=self._window,
            system=self._system or None,
            metadata={"cwd": found[1]} if found else {},
        )


def _identity(text: str, calls: Sequence[str]) -> tuple[str, ...]:
    """Return what identifies the answer of a call: the ids of its tool calls, or its text without any."""
    return tuple(calls) or (text,)


def _preserved(previous: Sequence[Any], messages: Sequence[Any]) -> int:
    """Return the number of messages after the summary that are the last ones before the compaction."""
    most = min(len(previous), len(messages) - 1)
    counts = (count for count in range(most, 0, -1) if messages[1] == previous[-count])
    return next((count for count in counts if messages[1 : 1 + count] == previous[-count:]), 0)


def _text(content: Any) -> str:
    return text_of(content_blocks(content))


def content_blocks(content: Any) -> list[dict[str, Any]]:
    """Return the text or the parts of a message as blocks."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list_of(content)
    return [block for part in parts if (block := _block(part))]


def _block(part: Mapping[str, Any]) -> dict[str, Any] | None:
    match part["type"]:
        case "text":
            return {"type": "text", "text": str(part["text"])} if part["text"] else None
        case "think":
            block = {"type": "thinking", "thinking": str(part["think"])}
            return {**block, "signature": str(part["encrypted"])} if part.get("encrypted") else block
    kind = str(part["type"]).removesuffix("_url")
    url = str(mapping_of(part.get(part["type"])).get("url") or "")
    if kind == "image" and (embedded := embedded_file(url)):
        source = {"type": "base64", "media_type": embedded[0], "data": embedded[1]}
        return {"type": "image", "source": source}
    if kind == "image" and url.startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {"type": "text", "text": f"[{kind}: {url[:200]}]"}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = arguments_of(parsed(function.get("arguments")))
    return {"type": "tool_use", "id": str(call["id"]), "name": str(function["name"]), "input": arguments}


def _usage(counts: Mapping[str, Any]) -> Usage | None:
    return disjoint_usage(
        uncached=tokens_of(counts, "input_other"),
        read=tokens_of(counts, "input_cache_read"),
        write=tokens_of(counts, "input_cache_creation"),
        output=tokens_of(counts, "output"),
    )
