"""Kimi Code's event logs (`wire.jsonl`), one for each agent of a session.

The events contain all messages, the model, usage and latencies, the system prompt and the tools. An answer
consists of the parts and tool calls of a step, in order. Messages are converted to Anthropic's format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.calls import conversation_id
from importers.formats.kimi_cli import content_blocks
from importers.formats.traced_messages import parsed
from importers.jsonlines import Record, first_objects, objects, read_records
from importers.turns import Answer, TurnBuilder, in_one_message
from importers.values import (
    arguments_of,
    disjoint_usage,
    list_of,
    mapping_of,
    milliseconds_of,
    request_of,
    text_of,
    time_of,
    title_of,
    tokens_of,
)

#: Events at the beginning of a log, after the version of the protocol.
_OPENING = (
    "runtime.set_binding",
    "profile.bind",
    "config.update",
    "turn.prompt",
    "context.append_message",
)

#: Origins of messages that state a task: of the user, or of the agent that started a sub-agent.
_TASKS = ("user", "system_trigger")

#: The agent whose log is that of the session.
_MAIN = "main"


class KimiCodeImporter:
    """Reads the logs of Kimi Code."""

    name = "kimi-code"
    label = "Kimi Code event log (wire.jsonl)"

    def recognizes(self, log: LogFile) -> bool:
        first, *others = first_objects(log, 5) or [{}]
        return "protocol_version" in first and any(record.get("type") in _OPENING for record in others)

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        reading = _Reading()
        yield from read_records(log, objects(log), reading.take)
        yield reading.session(log)


class _Reading:
    """The state of reading the log of one agent."""

    def __init__(self) -> None:
        self._turns = TurnBuilder(in_one_message)
        self._steps: dict[str, Answer] = {}
        self._bodies: list[dict[str, Any]] = []
        self._tools: list[dict[str, Any]] = []
        self._agent = self._system = self._folder = self._model = self._first_words = ""
        self._trigger = ""  #: of the next compaction

    def take(self, record: Record) -> None:
        """Read an event. Most of them are not part of the conversation."""
        event, source_id = record.value, f"line-{record.line}"
        at = event.get("time")
        self._agent = str(event.get("agentId") or self._agent)
        match event.get("type"):
            case "profile.bind" | "config.update":  # the second is that of versions before 2.0
                self._system = str(event.get("systemPrompt") or "") or self._system
                folder = event.get("cwd") or mapping_of(event.get("environmentDisclosure")).get("cwd")
                self._folder = str(folder or self._folder)
                self._model = str(event.get("modelAlias") or self._model)
            case "llm.tools_snapshot":
                self._tools = [_tool(tool) for tool in list_of(event.get("tools"))]
            case "llm.request":
                self._model = str(event.get("model") or self._model)
            case "context.append_message":
                self._add_message(event["message"], source_id, at)
            case "context.append_loop_event":
                self._take_step(event["event"], source_id, at)
            case "full_compaction.begin":
                self._trigger = str(event.get("source") or "")
            case "context.apply_compaction":
                before = tokens_of(event, "tokensBefore") or None
                self._turns.compacted(ClientCompaction(trigger=self._trigger, tokens_before=before))
                summary = event.get("contextSummary") or event.get("summary")
                text = text_of(summary["content"]) if isinstance(summary, Mapping) else str(summary or "")
                self._add_input(content_blocks(text), source_id, at, is_summary=True)
            case "context.clear":
                self._turns.compacted(ClientCompaction())

    def _add_message(self, message: Mapping[str, Any], source_id: str, at: Any) -> None:
        role, blocks = message["role"], content_blocks(message.get("content"))
        if role == "assistant":
            calls = [_call(call["id"], call) for call in list_of(message.get("toolCalls"))]
            if blocks or calls:
                body = {"role": "assistant", "content": [*blocks, *calls]}
                answer = Answer(body=body, source_id=source_id, at=time_of(at), model=self._model)
                self._turns.answer(answer, [call["id"] for call in calls])
        elif role == "tool":
            self._add_result(
                str(message.get("toolCallId") or ""), blocks, bool(message.get("isError")), source_id, at
            )
        else:
            origin = str(mapping_of(message.get("origin")).get("kind") or "user")
            self._add_input(blocks, str(message.get("id") or source_id), at, is_meta=origin not in _TASKS)

    def _add_input(
        self,
        blocks: list[dict[str, Any]],
        source_id: str,
        at: Any,
        *,
        is_meta: bool = False,
        is_summary: bool = False,
    ) -> None:
        if not blocks:
            return
        body = {"role": "user", "content": blocks}
        self._bodies.append(body)
        self._turns.add(
            ImportedMessage(
                body=body, source_id=source_id, at=time_of(at), is_meta=is_meta, is_summary=is_summary
            )
        )
        if not is_meta and not is_summary:
            self._first_words = request_of(self._first_words, text_of(blocks))

    def _take_step(self, event: Mapping[str, Any], source_id: str, at: Any) -> None:
        """Read an event of a model call."""
        match event["type"]:
            case "content.part":
                for block in content_blocks([event["part"]]):
                    self._answer(event, source_id, at).body["content"].append(block)
            case "tool.call":
                block = _call(event["toolCallId"], event)
                answer = self._answer(event, source_id, at)
                answer.body["content"].append(block)
                self._turns.called(answer, [block["id"]])
            case "tool.result":
                result = event["result"]
                blocks = content_blocks(result.get("output"))
                blocks += content_blocks(result.get("note"))
                self._add_result(str(event["toolCallId"]), blocks, bool(result.get("isError")), source_id, at)
            case "step.end":
                if str(event["uuid"]) in self._steps:
                    _note_end(self._steps.pop(str(event["uuid"])), event, at)

    def _answer(self, event: Mapping[str, Any], source_id: str, at: Any) -> Answer:
        """Return the answer of a step, which its first part begins."""
        step = str(event["stepUuid"])
        if step not in self._steps:
            body: dict[str, Any] = {"role": "assistant", "content": []}
            self._steps[step] = Answer(body=body, source_id=source_id, at=time_of(at), model=self._model)
            self._turns.answer(self._steps[step])
        return self._steps[step]

    def _add_result(
        self, call: str, blocks: list[dict[str, Any]], is_error: bool, source_id: str, at: Any
    ) -> None:
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": blocks}
        body = {"role": "user", "content": [{**result, "is_error": True} if is_error else result]}
        self._turns.result(call, ImportedMessage(body=body, source_id=source_id, at=time_of(at)))

    def session(self, log: LogFile) -> ImportedSession:
        agent = log.path.parent
        name = agent.parent.parent.name if agent.parent.name == "agents" else ""
        name = name or f"kimi-{conversation_id(self._bodies)}"
        is_main = self._agent in ("", _MAIN)
        return ImportedSession(
            external_id=name if is_main else f"{name}:{self._agent}",
            parent_external_id=None if is_main else name,
            format="anthropic",
            agent="kimi-code",
            turns=self._turns.turns(),
            model=self._model,
            title=title_of(self._first_words),
            system=self._system or None,
            tools=self._tools or None,
            metadata={"cwd": self._folder} if self._folder else {},
        )


def _note_end(answer: Answer, event: Mapping[str, Any], at: Any) -> None:
    """Set what is known about a call when it has ended."""
    counts = mapping_of(event.get("usage"))
    answer.usage = disjoint_usage(
        uncached=tokens_of(counts, "inputOther"),
        read=tokens_of(counts, "inputCacheRead"),
        write=tokens_of(counts, "inputCacheCreation"),
        output=tokens_of(counts, "output"),
    )
    answer.response_id = str(event["messageId"]) if event.get("messageId") else None
    answer.first_token_ms = milliseconds_of(event.get("llmFirstTokenLatencyMs"))
    stream = milliseconds_of(event.get("llmStreamDurationMs"))
    if answer.first_token_ms is not None and stream is not None:
        answer.duration_ms = answer.first_token_ms + stream
    answer.at = time_of(at) or answer.at


def _call(id: Any, call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = arguments_of(parsed(call.get("args", call.get("arguments"))))
    return {"type": "tool_use", "id": str(id), "name": str(call["name"]), "input": arguments}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": str(tool["name"]),
        "description": str(tool.get("description") or ""),
        "input_schema": dict(mapping_of(tool.get("parameters") or tool.get("inputSchema"))),
    }
