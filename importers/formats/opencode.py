"""OpenCode sessions: the JSON of `opencode export`, or the records of OpenCode's storage folder or database.

An export is one document, `{info, messages: [{info, parts}]}`. The storage contains the same objects as
separate records, which `importers/reading.py` and `importers/databases.py` join to one log per session, with
one record per line. `opencode_v2.py` reads the messages of version 2, which contain their parts.

OpenCode supports many providers and has its own format. It is converted to Anthropic's, which can represent
all of its content. Tool calls are stored together with their results. A message of the assistant contains one
model call, in older versions several, each of which is a step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from compaction.messages import Usage
from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.formats.opencode_parts import content_block, tool_result, user_block
from importers.formats.opencode_v2 import is_message, older_records
from importers.jsonlines import Record, first_value, list_in, read_records, take_messages, values
from importers.turns import Answer, TurnBuilder, in_one_message
from importers.values import (
    disjoint_usage,
    id_of,
    mapping_of,
    microusd_of,
    request_of,
    text_of,
    time_of,
    title_of,
    tokens_of,
)

#: Beginnings of the titles that sessions have until a model writes one.
_DEFAULT_TITLES = ("New session - ", "Child session - ")

#: What OpenCode sends in place of a compaction.
_COMPACTION = "What did we do so far?"


class OpenCodeImporter:
    """Reads OpenCode sessions."""

    name = "opencode"
    label = "OpenCode session: export (JSON), storage folder or database"

    def recognizes(self, log: LogFile) -> bool:
        value = first_value(log)
        return _is_session(value) or (isinstance(value, dict) and _is_session(value.get("info")))

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        reading = _Reading()
        yield from read_records(log, values(log), reading.take)
        yield from take_messages(log, reading.exported, reading.take_message)
        yield from take_messages(log, reading.messages(), reading.add)
        yield reading.session(log)


class _Reading:
    """The records of one session, and its turns while they are read."""

    def __init__(self) -> None:
        self._info: Mapping[str, Any] = {}
        self.exported: list[Any] = []
        self._messages: dict[str, Mapping[str, Any]] = {}
        self._parts: dict[str, dict[str, Mapping[str, Any]]] = {}
        self._turns = TurnBuilder(in_one_message)
        self._compactions: dict[str, Mapping[str, Any]] = {}
        self._first_words = self._model = ""

    def take(self, record: Record) -> None:
        """Read an export, or one record of the storage."""
        value = record.value
        if "messages" not in value:
            self._take_record(value)
            return
        if not isinstance(value["info"], dict):
            raise TypeError("info is not an object")
        self._info, self.exported = value["info"], list_in(value, "messages")

    def take_message(self, _: int, message: Mapping[str, Any]) -> None:
        """Read a message of an export."""
        records = [message] if is_message(message) else [message["info"], *message["parts"]]
        for record in records:
            self._take_record(record)

    def _take_record(self, value: Mapping[str, Any]) -> None:
        if "messageID" in value:
            self._parts.setdefault(value["messageID"], {})[value["id"]] = value
        elif "role" in value:
            self._messages[value["id"]] = value
        elif _is_session(value):
            self._info = value
        elif is_message(value):
            for record in older_records(value, len(self._messages)):
                self._take_record(record)

    def messages(self) -> list[tuple[Mapping[str, Any], bool]]:
        """Return the messages in order, each with whether it is the last. Ids are sequential."""
        ordered = sorted(self._messages.values(), key=_place)
        return [(message, message is ordered[-1]) for message in ordered]

    def add(self, _: int, item: tuple[Mapping[str, Any], bool]) -> None:
        """Add a message with its parts."""
        message, is_last = item
        parts = [part for _, part in sorted(self._parts.get(message["id"], {}).items())]
        if message["role"] == "user":
            self._add_user(message, parts)
        else:
            self._add_response(message, parts, is_last=is_last)

    def session(self, log: LogFile) -> ImportedSession:
        info = self._info
        title = str(info.get("title") or "")
        found = {
            "cwd": info.get("directory") or mapping_of(info.get("location")).get("directory"),
            "client_version": info.get("version"),
        }
        return ImportedSession(
            external_id=str(info.get("id") or log.stem),
            parent_external_id=id_of(info.get("parentID")),
            format="anthropic",
            agent="opencode",
            turns=self._turns.turns(),
            model=self._model,
            title=title_of(self._first_words if title.startswith(_DEFAULT_TITLES) else title)
            or title_of(self._first_words),
            started_at=time_of(mapping_of(info.get("time")).get("created")),
            metadata={name: each for name, each in found.items() if each},
        )

    def _add_user(self, message: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> None:
        if compaction := next((part for part in parts if part["type"] == "compaction"), None):
            self._compactions[message["id"]] = compaction
            return
        content = [block for part in parts if (block := user_block(part))]
        if not content:
            return
        typed = [part for part in parts if part["type"] != "text" or not part.get("synthetic")]
        body = {"role": "user", "content": content}
        at = time_of(mapping_of(message.get("time")).get("created"))
        if summary := message.get("compaction"):
            self._add_marker(str(summary.get("trigger") or ""), _usage(mapping_of(summary.get("tokens"))))
        self._turns.add(
            ImportedMessage(
                body=body, source_id=message["id"], at=at, is_meta=not typed, is_summary=bool(summary)
            )
        )
        if typed and not summary:
            words = text_of([part for part in typed if part["type"] == "text"])
            self._first_words = request_of(self._first_words, words)

    def _add_response(
        self, message: Mapping[str, Any], parts: list[Mapping[str, Any]], *, is_last: bool
    ) -> None:
        if message.get("summary") is True and not message.get("error"):
            self._add_compaction(message, parts)
            return
        steps = _steps(parts)
        for number, step in enumerate(steps):
            source_id = f"{message['id']}-{number}" if number else message["id"]
            answer = self._answer(message, step, source_id, is_only=len(steps) == 1)
            if not answer.body["content"]:
                continue
            self._model = answer.model or self._model
            tools = [part for part in step if part["type"] == "tool"]
            self._turns.answer(answer, [str(part["callID"]) for part in tools])
            for part in tools:
                self._add_result(part, is_last=is_last)

    def _answer(
        self, message: Mapping[str, Any], step: list[Mapping[str, Any]], source_id: str, *, is_only: bool
    ) -> Answer:
        finish = next((part for part in step if part["type"] == "step-finish"), message if is_only else {})
        times = mapping_of(message.get("time"))
        usage = _usage(mapping_of(finish.get("tokens")))
        # A fork copies messages with new ids, but with their times and tokens. Version 2 omits the total,
        # so that the tokens of the output may be read differently.
        prompt = [usage.uncached_tokens, usage.cache_read_tokens, usage.cache_write_tokens] if usage else []
        identity = [*map(times.get, ("created", "completed")), message.get("modelID"), prompt]
        identity.append(source_id.partition("-")[2])
        digest = hashlib.sha256(orjson.dumps(identity)).hexdigest()
        return Answer(
            body={"role": "assistant", "content": [block for part in step if (block := content_block(part))]},
            source_id=source_id,
            at=time_of(times.get("created")),
            model=str(message.get("modelID") or ""),
            usage=usage,
            response_id=f"opencode-{digest[:24]}" if usage else None,
            # The cost is 0 for subscriptions, and for models whose price OpenCode does not know.
            cost_microusd=microusd_of(finish.get("cost")) or None,
        )

    def _add_result(self, part: Mapping[str, Any], *, is_last: bool) -> None:
        result = tool_result(part, is_last=is_last)
        if result:
            body = {"role": "user", "content": [result]}
            at = time_of(mapping_of(part["state"].get("time")).get("end"))
            self._turns.result(
                str(part["callID"]), ImportedMessage(body=body, source_id=str(part["id"]), at=at)
            )

    def _add_compaction(self, message: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> None:
        """Read a compaction. OpenCode then sends its summary as an answer to a question of the user."""
        request = self._compactions.get(str(message.get("parentID")), {})
        trigger = {True: "auto", False: "manual"}.get(request.get("auto", True), "")
        answer = self._answer(message, parts, message["id"], is_only=True)
        if not answer.body["content"]:
            return
        answer.is_summary = True
        self._add_marker(trigger, answer.usage)
        body = {"role": "user", "content": [{"type": "text", "text": _COMPACTION}]}
        source_id = f"{message['id']}-request"
        self._turns.add(ImportedMessage(body=body, source_id=source_id, at=answer.at, is_meta=True))
        self._turns.answer(answer)

    def _add_marker(self, trigger: str, usage: Usage | None) -> None:
        before = usage.prompt_tokens if usage else None
        self._turns.compacted(ClientCompaction(trigger=trigger, tokens_before=before))


def _is_session(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and str(value.get("id")).startswith("ses_")
        and "projectID" in value
        and "role" not in value
    )


def _place(message: Mapping[str, Any]) -> tuple[int, float, str]:
    """Return the place of a message. Those of version 2, which have numbers, follow those of earlier ones."""
    created = mapping_of(message.get("time")).get("created")
    return (message.get("seq", -1), created if isinstance(created, int | float) else 0, str(message["id"]))


def _steps(parts: list[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return the parts of each model call."""
    steps: list[list[Mapping[str, Any]]] = [[]]
    for part in parts:
        if part["type"] == "step-start" and steps[-1]:
            steps.append([])
        steps[-1].append(part)
    return steps


def _usage(tokens: Mapping[str, Any]) -> Usage | None:
    """Return the usage. Newer versions count reasoning apart from the output, and then log the total."""
    cache = mapping_of(tokens.get("cache"))
    uncached, output = tokens_of(tokens, "input"), tokens_of(tokens, "output")
    read, write = tokens_of(cache, "read"), tokens_of(cache, "write")
    reasoning = tokens_of(tokens, "reasoning")
    if reasoning > output or tokens_of(tokens, "total") == uncached + read + write + output + reasoning:
        output += reasoning
    return disjoint_usage(uncached=uncached, read=read, write=write, output=output)
