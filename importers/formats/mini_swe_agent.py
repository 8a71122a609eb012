"""mini-swe-agent trajectories: one JSON document with `messages` in OpenAI's chat format.

`extra.response` of an assistant message contains the provider's whole response. A last message with the role
`exit` contains the submission; it was never sent to a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importers.base import Damage, ImportedMessage, ImportedSession, LogFile
from importers.chat import call_ids, chat_body, chat_usage
from importers.jsonlines import document, document_damages, take_messages
from importers.turns import Answer, TurnBuilder
from importers.values import mapping_of, microusd_of, text_of, time_of, title_of


class MiniSweAgentImporter:
    """Reads mini-swe-agent trajectories."""

    name = "mini-swe-agent"
    label = "mini-swe-agent trajectory (JSON)"

    def recognizes(self, log: LogFile) -> bool:
        value = document(log)
        return (
            isinstance(value, dict)
            and isinstance(value.get("messages"), list)
            and (
                str(value.get("trajectory_format", "")).startswith("mini-swe-agent")
                or "mini_version" in mapping_of(value.get("info"))
            )
        )

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        value = document(log)
        reading = _Reading(log.name)
        yield from take_messages(log, value["messages"], reading.take)
        yield from document_damages(log)
        yield reading.session(log, value)


class _Reading:
    def __init__(self, name: str) -> None:
        self._turns = TurnBuilder()
        self._first_response = ""
        self._model = ""
        self._task = ""

    def take(self, number: int, message: Mapping[str, Any]) -> None:
        if message["role"] == "exit":
            return
        extra = mapping_of(message.get("extra"))
        body = chat_body(message)
        if body["role"] == "assistant":
            self._answer(number, body, extra)
            return
        at = time_of(extra.get("timestamp"))
        self._turns.add_chat(ImportedMessage(body=body, source_id=f"message-{number}", at=at))
        if body["role"] == "user":
            self._task = self._task or text_of(body["content"])

    def _answer(self, number: int, body: dict[str, Any], extra: Mapping[str, Any]) -> None:
        response = mapping_of(extra.get("response"))
        response_id = str(response.get("id") or "")
        self._first_response = self._first_response or response_id
        self._model = str(response.get("model") or self._model)
        answer = Answer(
            body=body,
            source_id=f"message-{number}",
            at=time_of(extra.get("timestamp")) or time_of(response.get("created")),
            model=str(response.get("model") or ""),
            usage=chat_usage(response.get("usage")),
            response_id=response_id or None,
            cost_microusd=microusd_of(extra.get("cost")),
        )
        self._turns.answer(answer, call_ids(body))

    def session(self, log: LogFile, value: Mapping[str, Any]) -> ImportedSession:
        info = mapping_of(value.get("info"))
        configured = mapping_of(mapping_of(info.get("config")).get("model")).get("model_name")
        instance = str(value.get("instance_id") or log.stem)
        turns = self._turns.turns()
        return ImportedSession(
            external_id=f"{instance}-{self._first_response or log.stem}",
            format="openai",
            agent="mini-swe-agent",
            turns=turns,
            model=self._model or str(configured or ""),
            title=str(value.get("instance_id") or "") or title_of(self._task),
            started_at=next((turn.at for turn in turns if turn.at), None),
            metadata={
                key: info[key]
                for key in ("exit_status", "submission", "mini_version")
                if isinstance(info.get(key), str)
            },
        )
