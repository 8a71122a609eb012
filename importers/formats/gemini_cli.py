"""Gemini CLI's chat recordings and checkpoints.

A recording is one JSON document (`sessionId`, `messages`) or, in newer versions, an append-only JSONL file: a
line of metadata, then one record per message. A message that changes is written again under the same id,
`$set` changes the metadata or replaces the context, `$rewindTo` removes messages from it. A checkpoint is a
list of Gemini `Content` objects, plain or under `history` or `clientHistory`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compaction.messages import Usage
from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.calls import conversation_id
from importers.chat import call_ids
from importers.formats.gemini_parts import answer_body, chat_content, result_text
from importers.jsonlines import Record, first_value, read_records, take_messages, values
from importers.turns import Answer, TurnBuilder
from importers.values import mapping_of, text_of, time_of, title_of, tokens_of, usage_of

#: Types of records that are part of the conversation. Others (info, warning, error) were only displayed.
_SPOKEN = ("user", "gemini")

#: Beginning of the message in which the client describes the machine.
_CONTEXT = ("<session_context>", "This is the Gemini CLI.")


class GeminiCliImporter:
    """Reads Gemini CLI's chat recordings and checkpoints."""

    name = "gemini-cli"
    label = "Gemini CLI chat recording or checkpoint (JSON, JSONL)"

    def recognizes(self, log: LogFile) -> bool:
        value = first_value(log)
        if (
            isinstance(value, dict)
            and "sessionId" in value
            and ("projectHash" in value or "startTime" in value)
        ):
            return True
        return bool(_contents(value))

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        recording = _Recording()
        checkpoint = _Checkpoint()

        def take(record: Record) -> None:
            if contents := _contents(record.value):
                checkpoint.take(contents)
            else:
                recording.take(record.value)

        yield from read_records(log, values(log), take)
        if recording.id:
            yield from recording.read(log)
        if checkpoint.mark:
            yield checkpoint.session(log)


class _Recording:
    """The messages of one recording, by id, in the order of their first record."""

    def __init__(self) -> None:
        self.id = ""
        self._facts: dict[str, Any] = {}
        self._entries: dict[str, Mapping[str, Any] | None] = {}
        self._turns = TurnBuilder()
        self._opening = self._model = ""
        self._is_compacted = False

    def take(self, value: Mapping[str, Any]) -> None:
        """Read one record: metadata, a message, or a change to either."""
        if "$rewindTo" in value:
            return  # rewound messages remain, because they were sent and billed
        if "type" in value:
            self._entries[str(value["id"])] = value
            return
        facts = mapping_of(value.get("$set")) or value
        self._facts |= {key: fact for key, fact in facts.items() if key != "messages"}
        self.id = str(self._facts.get("sessionId") or self.id)
        self._replace(facts.get("messages") or [])

    def _replace(self, messages: list[Mapping[str, Any]]) -> None:
        """Replace the whole context. If it begins with an unknown message, the client has compacted."""
        if self._entries and messages and str(messages[0]["id"]) not in self._entries:
            self._entries[f"compaction-{len(self._entries)}"] = None
        for message in messages:
            self._entries[str(message["id"])] = message

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        """Yield the damaged messages, then the session."""
        yield from take_messages(log, self._entries.items(), lambda _, item: self._add(*item))
        yield self._session(log)

    def _add(self, key: str, entry: Mapping[str, Any] | None) -> None:
        if entry is None:
            self._turns.compacted(ClientCompaction(trigger="auto"))
            self._is_compacted = True
        elif entry.get("type") == "user":
            message = _user(entry, key, is_summary=self._is_compacted)
            self._is_compacted = False
            self._opening = self._opening or ("" if message.is_meta else text_of(message.body["content"]))
            self._turns.add(message)
        elif entry.get("type") == "gemini":
            self._model = str(entry.get("model") or self._model)
            _answer(self._turns, entry, key)

    def _session(self, log: LogFile) -> ImportedSession:
        folders = self._facts.get("directories")
        return ImportedSession(
            external_id=self.id,
            format="openai",
            agent="gemini-cli",
            turns=self._turns.turns(),
            model=self._model,
            title=str(self._facts.get("summary") or "") or title_of(self._opening),
            parent_external_id=_parent(log) if self._facts.get("kind") == "subagent" else None,
            started_at=time_of(self._facts.get("startTime")),
            metadata={"cwd": str(folders[0])} if isinstance(folders, list) and folders else {},
        )


def _user(entry: Mapping[str, Any], key: str, *, is_summary: bool) -> ImportedMessage:
    content = entry.get("content")
    words = content if isinstance(content, str) else chat_content(content)
    return ImportedMessage(
        body={"role": "user", "content": words},
        source_id=key,
        at=time_of(entry.get("timestamp")),
        is_meta=text_of(words).startswith(_CONTEXT),
        is_summary=is_summary,
    )


def _answer(turns: TurnBuilder, entry: Mapping[str, Any], key: str) -> None:
    calls = entry.get("toolCalls") or []
    body = answer_body(entry.get("content"), calls, key)
    at = time_of(entry.get("timestamp"))
    answer = Answer(
        body=body,
        source_id=key,
        at=at,
        model=str(entry.get("model") or ""),
        usage=_usage(entry.get("tokens")),
        response_id=key,
    )
    ids = call_ids(body)
    turns.answer(answer, ids)
    for id, made in zip(ids, calls, strict=True):
        if made.get("result") is not None:
            result = {"role": "tool", "tool_call_id": id, "content": result_text(made["result"])}
            made_at = time_of(made.get("timestamp"))
            turns.result(id, ImportedMessage(body=result, source_id=f"{key}-{id}", at=made_at))


def _usage(tokens: Any) -> Usage | None:
    """Return the usage; `thoughts` are billed as output."""
    counts = mapping_of(tokens)
    return usage_of(
        prompt=tokens_of(counts, "input") + tokens_of(counts, "tool"),
        cached=tokens_of(counts, "cached"),
        output=tokens_of(counts, "output") + tokens_of(counts, "thoughts"),
    )


class _Checkpoint:
    """The turns of a list of Gemini contents. Calls without an id are matched by name, in order."""

    def __init__(self) -> None:
        self.mark = ""
        self._turns = TurnBuilder()
        self._open: dict[str, str] = {}  #: names of the calls without a response, by id
        self._count = 0
        self._opening = ""

    def take(self, contents: list[Mapping[str, Any]]) -> None:
        self.mark = conversation_id(
            {"role": content["role"], "content": chat_content(content["parts"])} for content in contents
        )
        for content in contents:
            self._count += 1
            if content["role"] == "model":
                self._model(content["parts"])
            else:
                self._input(content["parts"])

    def _model(self, parts: list[Mapping[str, Any]]) -> None:
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        body = answer_body(parts, calls, f"call-{self._count}")
        ids = call_ids(body)
        if calls:
            self._open = {id: str(call["name"]) for id, call in zip(ids, calls, strict=True)}
        self._turns.answer(Answer(body=body, source_id=f"content-{self._count}"), ids)

    def _input(self, parts: list[Mapping[str, Any]]) -> None:
        for number, part in enumerate(parts):
            if "functionResponse" in part:
                response = part["functionResponse"]
                id = self._answered(str(response.get("id") or ""), str(response.get("name") or ""))
                body = {"role": "tool", "tool_call_id": id, "content": result_text([part])}
                source = f"content-{self._count}-{number}"
                self._turns.result(id, ImportedMessage(body=body, source_id=source))
        words = chat_content([part for part in parts if "functionResponse" not in part])
        if words:
            is_meta = text_of(words).startswith(_CONTEXT)
            self._opening = self._opening or ("" if is_meta else text_of(words))
            message = {"role": "user", "content": words}
            source = f"content-{self._count}"
            self._turns.add(ImportedMessage(body=message, source_id=source, is_meta=is_meta))

    def _answered(self, id: str, name: str) -> str:
        """Return the id of the call that a response answers, and close it."""
        if id not in self._open:
            id = next((known for known, called in self._open.items() if called == name), id)
        self._open.pop(id, None)
        return id

    def session(self, log: LogFile) -> ImportedSession:
        return ImportedSession(
            external_id=f"gemini-{log.stem}-{self.mark}",
            format="openai",
            agent="gemini-cli",
            turns=self._turns.turns(),
            title=title_of(self._opening),
        )


def _contents(value: Any) -> list[Mapping[str, Any]]:
    """Return the Gemini contents of a checkpoint, or [] if the value is not one."""
    if isinstance(value, dict):
        value = value.get("clientHistory") or value.get("history")
    if not isinstance(value, list) or not value:
        return []
    fits = all(
        isinstance(item, dict)
        and item.get("role") in ("user", "model")
        and isinstance(item.get("parts"), list)
        for item in value
    )
    return value if fits else []


def _parent(log: LogFile) -> str | None:
    """Return the id of the session that a sub-agent's recording belongs to: the name of its folder."""
    folder = log.path.parent.name
    return folder if folder not in ("", "chats") else None
