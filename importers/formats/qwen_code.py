"""Qwen Code's chat recordings: one record per line, with the content parts of Gemini's API.

A sub-agent is recorded in `subagents/<session id>/agent-<id>.jsonl`, beside the folder `chats`. A record of
the subtype `chat_compression` contains the history with which the client continued: its summary, then recent
messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compaction.messages import Usage
from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.chat import call_ids
from importers.formats.gemini_parts import answer_body, chat_content, result_text
from importers.jsonlines import first_objects, objects, read_records
from importers.turns import Answer, TurnBuilder
from importers.values import id_of, list_of, mapping_of, text_of, time_of, title_of, tokens_of, usage_of

#: Subtypes of user messages that no person typed.
_META = ("cron", "notification", "goal_runtime")


class QwenCodeImporter:
    """Reads Qwen Code's chat recordings."""

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
        yield recording.session(log)


class _Recording:
    """The turns of one recording."""

    def __init__(self) -> None:
        self._model = self._opening = self._title = ""
        self._parent: str | None = None
        self._window: int | None = None
        self._turns = TurnBuilder()
        self._facts: Mapping[str, Any] = {}

    def take(self, record: Mapping[str, Any]) -> None:
        """Read one record."""
        kind = record.get("type")
        if kind == "system":
            self._take_event(record, mapping_of(record.get("systemPayload")))
        if kind not in ("user", "assistant", "tool_result"):
            return
        parts = record["message"]["parts"]
        self._facts = record
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
        words, is_meta = chat_content(parts), record.get("subtype") in _META
        self._opening = self._opening or ("" if is_meta else text_of(words))
        body = {"role": "user", "content": words}
        self._turns.add(ImportedMessage(body=body, source_id=key, at=at, is_meta=is_meta))

    def _take_event(self, record: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        """Read a record that is not a message. Most, such as telemetry, are left out."""
        match record.get("subtype"):
            case "chat_compression":
                self._take_compaction(record, payload)
            case "custom_title":
                self._title = str(payload.get("customTitle") or "")
            case "parent_session":
                self._parent = id_of(payload.get("parentSessionId"))

    def _take_compaction(self, record: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        before = tokens_of(mapping_of(payload.get("info")), "originalTokenCount") or None
        self._turns.compacted(ClientCompaction(tokens_before=before))
        for content in list_of(payload.get("compressedHistory"))[:1]:
            body = {"role": "user", "content": chat_content(content["parts"])}
            at = time_of(record.get("timestamp"))
            message = ImportedMessage(body=body, source_id=str(record["uuid"]), at=at, is_summary=True)
            self._turns.add(message)

    def _answer(self, record: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> None:
        key = str(record["uuid"])
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        body = answer_body(parts, calls, key)
        self._model = str(record.get("model") or self._model)
        self._window = tokens_of(record, "contextWindowSize") or self._window
        answer = Answer(
            body=body,
            source_id=key,
            at=time_of(record.get("timestamp")),
            model=self._model,
            usage=_usage(record.get("usageMetadata")),
            response_id=key,
        )
        self._turns.answer(answer, call_ids(body))

    def session(self, log: LogFile) -> ImportedSession:
        id, agent = str(self._facts.get("sessionId") or log.stem), self._facts.get("agentId")
        is_agent = bool(agent) and self._facts.get("isSidechain") is True
        named = {"cwd": "cwd", "git_branch": "gitBranch", "client_version": "version"}
        return ImportedSession(
            external_id=f"{id}:agent-{agent}" if is_agent else id,
            parent_external_id=id if is_agent else self._parent,
            format="openai",
            agent="qwen-code",
            turns=self._turns.turns(),
            model=self._model,
            title=title_of(self._title) or title_of(self._opening),
            context_window=self._window,
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
