"""SWE-agent's trajectories: one JSON document with `history`, and usually `trajectory` and `info`.

`history` contains the messages as the model received them. Older versions have no tool calls: actions and
observations are plain text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importers.base import Damage, ImportedMessage, ImportedSession, LogFile
from importers.calls import conversation_id
from importers.chat import call_ids, chat_body
from importers.jsonlines import document, document_damages, take_messages
from importers.turns import Answer, TurnBuilder
from importers.values import mapping_of, microusd_of, text_of, title_of


class SweAgentImporter:
    """Reads SWE-agent's trajectories."""

    name = "swe-agent"
    label = "SWE-agent trajectory (JSON, .traj)"

    def recognizes(self, log: LogFile) -> bool:
        history = mapping_of(document(log)).get("history")
        first = mapping_of(history[0]) if isinstance(history, list) and history else {}
        return "agent" in first and "role" in first and "content" in first

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        value = document(log)
        reading = _Reading(str(value["history"][0]["agent"]))
        yield from take_messages(log, value["history"], reading.take)
        yield from document_damages(log)
        yield reading.session(log, value)


class _Reading:
    """The messages of one agent; helpers such as a summarizer have separate conversations."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._turns = TurnBuilder()
        self._bodies: list[dict[str, Any]] = []

    def take(self, number: int, message: Mapping[str, Any]) -> None:
        if message.get("agent", self._agent) != self._agent:
            return
        body = chat_body(_with_call_id(message))
        self._bodies.append(body)
        source_id = f"message-{number}"
        if body["role"] == "assistant":
            self._turns.answer(Answer(body=body, source_id=source_id), call_ids(body))
        else:
            is_demo = bool(message.get("is_demo"))
            self._turns.add_chat(ImportedMessage(body=body, source_id=source_id, is_meta=is_demo))

    def session(self, log: LogFile, value: Mapping[str, Any]) -> ImportedSession:
        info = mapping_of(value.get("info"))
        stats = mapping_of(info.get("model_stats"))
        opening = next((text_of(body.get("content")) for body in self._bodies if body["role"] == "user"), "")
        metadata: dict[str, Any] = {
            key: info[key] for key in ("exit_status", "submission") if isinstance(info.get(key), str)
        }
        if cost := microusd_of(stats.get("instance_cost")):
            metadata["cost_microusd"] = cost  # of the whole run: the log does not break it down
        return ImportedSession(
            external_id=f"{log.stem}-{conversation_id(self._bodies)}",
            format="openai",
            agent="swe-agent",
            turns=self._turns.turns(),
            title=title_of(opening),
            metadata=metadata,
        )


def _with_call_id(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a tool message with its call id in the field of the chat format."""
    ids = message.get("tool_call_ids")
    if message["role"] == "tool" and ids and "tool_call_id" not in message:
        return {**message, "tool_call_id": ids[0]}
    return message
