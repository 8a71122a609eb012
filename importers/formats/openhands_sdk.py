"""Conversations of OpenHands' agent SDK, which the CLI and the server use since version 1.

A conversation is a folder: `base_state.json` with usage and cost, and `events/event-<number>-<id>.json` with
one event per file. `importers/reading.py` joins them to one log. A list of events, as the server returns it,
is also a log, but has no usage. Events that are not sent to the model are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compaction.messages import Usage
from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.calls import conversation_id
from importers.chat import call_ids
from importers.jsonlines import Record, first_value, read_records, take_messages, values
from importers.turns import Answer, TurnBuilder
from importers.values import (
    id_of,
    list_of,
    mapping_of,
    microusd_of,
    request_of,
    text_of,
    time_of,
    title_of,
    tokens_of,
)

#: Kinds of events that are sent to the model, or change what is sent.
_KINDS = (
    "SystemPromptEvent",
    "MessageEvent",
    "ActionEvent",
    "ObservationEvent",
    "UserRejectObservation",
    "AgentErrorEvent",
    "Condensation",
)
_ERROR_HEADER = "[An error occurred during execution.]\n"


class OpenHandsSdkImporter:
    """Reads conversations of OpenHands' agent SDK."""

    name = "openhands-sdk"
    label = "OpenHands conversation since version 1 (folder, or JSON of its events)"

    def recognizes(self, log: LogFile) -> bool:
        value = first_value(log)
        first = value[0] if isinstance(value, list) and value else value
        return _is_state(first) or (isinstance(first, dict) and first.get("kind") in _KINDS)

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        conversation = _Conversation()
        yield from read_records(log, values(log), conversation.take)
        yield from take_messages(log, conversation.listed, conversation.take_value)
        yield conversation.session(log)


class _Conversation:
    """One conversation while its events are read."""

    def __init__(self) -> None:
        self._state: Mapping[str, Any] = {}
        self.listed: list[Any] = []
        self._turns = TurnBuilder()
        self._answers: dict[str, Answer] = {}
        self._bodies: list[Mapping[str, Any]] = []
        self._system: str | None = None
        self._first_words = ""

    def take(self, record: Record) -> None:
        """Read the state, an event, or a list of events."""
        if isinstance(record.value, list):
            self.listed = record.value
        else:
            self.take_value(0, record.value)

    def take_value(self, _: int, value: Any) -> None:
        """Read the state or an event."""
        if _is_state(value):
            self._state = value
        elif value.get("kind") in _KINDS:
            self._take_event(value["kind"], value)

    def session(self, log: LogFile) -> ImportedSession:
        self._note_usage()
        state = self._state
        metadata = {"cwd": mapping_of(state.get("workspace")).get("working_dir")}
        turns = self._turns.turns()
        return ImportedSession(
            external_id=f"openhands-{state.get('id') or _log_name(log, self._bodies)}",
            format="openai",
            agent="openhands",
            turns=turns,
            model=next((turn.model for turn in turns if turn.model), ""),
            title=title_of(self._first_words),
            started_at=next((turn.at for turn in turns if turn.at), None),
            system=self._system,
            metadata={key: value for key, value in metadata.items() if isinstance(value, str)},
        )

    def _take_event(self, kind: str, event: Mapping[str, Any]) -> None:
        source_id, at = str(event["id"]), time_of(event.get("timestamp"))
        if kind == "SystemPromptEvent":
            prompt = [event["system_prompt"]]
            if context := event.get("dynamic_context"):
                prompt.append(context)
            self._system = text_of(prompt)
        elif kind == "Condensation":
            self._turns.compacted(ClientCompaction(trigger="auto"))
            if event.get("summary"):
                body = {"role": "user", "content": str(event["summary"])}
                self._turns.add(ImportedMessage(body=body, source_id=source_id, at=at, is_summary=True))
        elif kind == "ActionEvent":
            self._take_action(event, Answer(body={}, source_id=source_id, at=at))
        elif kind == "MessageEvent" and event["llm_message"]["role"] == "assistant":
            body = {"role": "assistant", "content": _content(event["llm_message"]["content"])}
            self._add_answer(event, Answer(body=body, source_id=source_id, at=at))
        elif kind == "MessageEvent":
            self._take_message(event, source_id, at)
        else:
            body = {"role": "tool", "tool_call_id": str(event["tool_call_id"]), "content": _output(event)}
            self._turns.add_chat(ImportedMessage(body=body, source_id=source_id, at=at))

    def _take_message(self, event: Mapping[str, Any], source_id: str, at: Any) -> None:
        typed = event["llm_message"]["content"]
        body = {"role": "user", "content": _content([*typed, *(event.get("extended_content") or [])])}
        is_meta = event.get("source") != "user"
        self._turns.add(ImportedMessage(body=body, source_id=source_id, at=at, is_meta=is_meta))
        self._bodies.append(body)
        if not is_meta:
            self._first_words = request_of(self._first_words, text_of(typed))

    def _take_action(self, event: Mapping[str, Any], answer: Answer) -> None:
        """Read a tool call. Parallel calls of one response are separate events."""
        called = event["tool_call"]
        function = {"name": str(called["name"]), "arguments": str(called.get("arguments") or "{}")}
        id = str(event["tool_call_id"])
        call = {"id": id, "type": "function", "function": function}
        known = self._answers.get(str(event.get("llm_response_id")))
        if known and known.body.get("tool_calls"):
            known.body["tool_calls"].append(call)
            self._turns.called(known, [id])
            return
        words = text_of(event.get("thought")) or None
        answer.body = {"role": "assistant", "content": words, "tool_calls": [call]}
        self._add_answer(event, answer)

    def _add_answer(self, event: Mapping[str, Any], answer: Answer) -> None:
        answer.response_id = id_of(event.get("llm_response_id"))
        if answer.response_id:
            self._answers[answer.response_id] = answer
        self._turns.answer(answer, call_ids(answer.body))

    def _note_usage(self) -> None:
        """Take usage and cost of the responses from the state."""
        found = mapping_of(mapping_of(self._state.get("stats")).get("usage_to_metrics"))
        for metrics in map(mapping_of, found.values()):
            usages, costs = list_of(metrics.get("token_usages")), list_of(metrics.get("costs"))
            for number, usage in enumerate(map(mapping_of, usages)):
                answer = self._answers.get(str(usage.get("response_id")))
                if answer:
                    answer.usage, answer.model = _usage(usage), str(usage.get("model") or "")
                    if len(costs) == len(usages):
                        answer.cost_microusd = microusd_of(mapping_of(costs[number]).get("cost")) or None


def _is_state(value: Any) -> bool:
    return isinstance(value, dict) and "stats" in value and "agent" in value and "id" in value


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Return the usage; `prompt_tokens` contain the cached tokens."""
    total = tokens_of(usage, "prompt_tokens")
    read, write = tokens_of(usage, "cache_read_tokens"), tokens_of(usage, "cache_write_tokens")
    return Usage(
        uncached_tokens=max(0, total - read - write),
        cache_read_tokens=read,
        cache_write_tokens=write,
        output_tokens=tokens_of(usage, "completion_tokens"),
    )


def _content(parts: list[Mapping[str, Any]]) -> Any:
    """Return the content as text, or as parts if it contains images."""
    if all("image_urls" not in part for part in parts):
        return text_of(parts)
    content: list[dict[str, Any]] = []
    for part in parts:
        urls = part.get("image_urls")
        if urls is None:
            content.append({"type": "text", "text": part["text"]})
        content.extend({"type": "image_url", "image_url": {"url": url}} for url in urls or ())
    return content


def _output(event: Mapping[str, Any]) -> Any:
    """Return what the model reads as the result of a tool."""
    if event["kind"] == "UserRejectObservation":
        return f"Action rejected: {event.get('rejection_reason') or ''}"
    if event["kind"] == "AgentErrorEvent":
        return str(event.get("error") or "")
    observation = event["observation"]
    parts = observation.get("content")
    if isinstance(parts, str) or parts is None:
        parts = [{"type": "text", "text": parts or str(observation.get("output") or "")}]
    metadata = mapping_of(observation.get("metadata"))
    if "exit_code" in metadata:
        parts = [{"type": "text", "text": _terminal_output(text_of(parts), metadata)}]
    header = [{"type": "text", "text": _ERROR_HEADER}] if observation.get("is_error") else []
    return _content([*header, *parts, *(event.get("extended_content") or [])])


def _terminal_output(words: str, metadata: Mapping[str, Any]) -> str:
    """Return a command's output with the lines that OpenHands appends."""
    lines = [f"{metadata.get('prefix') or ''}{words}{metadata.get('suffix') or ''}"]
    if folder := metadata.get("working_dir"):
        lines.append(f"[Current working directory: {folder}]")
    if interpreter := metadata.get("py_interpreter_path"):
        lines.append(f"[Python interpreter: {interpreter}]")
    if metadata["exit_code"] != -1:
        lines.append(f"[Command finished with exit code {metadata['exit_code']}]")
    return "\n".join(lines)


def _log_name(log: LogFile, bodies: list[Mapping[str, Any]]) -> str:
    """Return the name of a conversation's folder, or of a list of events."""
    if log.path.name == "events" and (folder := log.path.parent.name):
        return folder
    return f"{log.stem}-{conversation_id(bodies)}"
