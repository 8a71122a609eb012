"""Qwen Code's chat recordings: one record per line, with the content parts of Gemini's API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compaction.messages import Usage
from importers.base import Damage, ImportedMessage, ImportedSession, LogFile
from importers.chat import call_ids
from importers.formats.gemini_parts import answer_body, chat_content, result_text
from importers.jsonlines import first_objects, objects, read_records
from importers.turns import Answer, TurnBuilder
from importers.values import mapping_of, text_of, time_of, title_of, tokens_of, usage_of


class QwenCodeImporter:
    """Reads Qwen Code's chat recordings. They do not contain the messages of sub-agents."""

    name = "qwen-code"
    label = "Qwen Code chat recording (JSONL)"

    def recognizes(self, log: LogFile) -> bool:
        return any(
            "sessionId" in record and isinstance(mapping_of(record.get("message")).get("parts"), list)
            for record in first_objects(log, 5)
        )

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        recording = _Recording()
        yield from read_records(log, objects(log), lambda item: recording.take(item.value))
        if recording.id:
            yield recording.session()


class _Recording:
    """The turns of one recording."""

    def __init__(self) -> None:
        self.id = self._model = self._opening = ""
        self._turns = TurnBuilder()
        self._facts: Mapping[str, Any] = {}

    def take(self, record: Mapping[str, Any]) -> None:
        """Read one record. Those of the type `system`, such as telemetry, are left out."""
        kind = record.get("type")
        if kind not in ("user", "assistant", "tool_result"):
            return
        parts = record["message"]["parts"]
        self.id, self._facts = str(record["sessionId"]), record
        if kind == "assistant":
            self._answer(record, parts)
            return
        key, at = str(record["uuid"]), time_of(record.get("timestamp"))
        if kind == "tool_result":
            for number, part in enumerate(parts):
                call = str(mapping_of(part.get("functionResponse")).get("id") or "")
                body = {"role": "tool", "tool_call_id": call, "content": result_text([part])}
                message = ImportedMessage(body=body, source_id=f"{key}-{number}", at=at)
                self._turns.result(call, message)
            return
        words = chat_content(parts)
        self._opening = self._opening or text_of(words)
        self._turns.add(ImportedMessage(body={"role": "user", "content": words}, source_id=key, at=at))

    def _answer(self, record: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> None:
        key = str(record["uuid"])
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        body = answer_body(parts, calls, key)
        self._model = str(record.get("model") or self._model)
        answer = Answer(
            body=body,
            source_id=key,
            at=time_of(record.get("timestamp")),
            model=self._model,
            usage=_usage(record.get("usageMetadata")),
            response_id=key,
        )
        self._turns.answer(answer, call_ids(body))

    def session(self) -> ImportedSession:
        named = {"cwd": "cwd", "git_branch": "gitBranch", "client_version": "version"}
        return ImportedSession(
            external_id=self.id,
            format="openai",
            agent="qwen-code",
            turns=self._turns.turns(),
            model=self._model,
            title=title_of(self._opening),
            metadata={name: str(self._facts[key]) for name, key in named.items() if self._facts.get(key)},
        )


def _usage(counts: Any) -> Usage | None:
    """Return the usage; the output includes the reasoning, as in OpenAI's API."""
    found = mapping_of(counts)
    return usage_of(
        prompt=tokens_of(found, "promptTokenCount"),
        cached=tokens_of(found, "cachedContentTokenCount"),
        output=tokens_of(found, "candidatesTokenCount"),
    )
