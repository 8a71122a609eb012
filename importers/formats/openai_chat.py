"""Plain JSON and JSONL in OpenAI's chat format.

A log is one document or one value per line. A value is a list of messages, an object with `messages` (a
conversation, or a logged request with its `response`), or a single message. Consecutive single messages are
one conversation; a request that repeats and continues the preceding conversation is its next turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from importers.base import Damage, ImportedSession, LogFile
from importers.calls import CallSeries, LoggedCall, logged_call, logged_request
from importers.chat import is_chat_message
from importers.jsonlines import Record, first_value, read_records, take_messages, values
from importers.values import title_of

_ID_KEYS = ("session_id", "conversation_id", "thread_id", "id")


class OpenAIChatImporter:
    """Reads plain chat JSON and JSONL."""

    name = "openai-chat"
    label = "OpenAI chat messages (JSON or JSONL)"
    format = "openai"
    series: type[CallSeries] = CallSeries

    def recognizes(self, log: LogFile) -> bool:
        value = first_value(log)
        items = value if isinstance(value, list) else [value]
        return bool(items) and (is_chat_message(items[0]) or _is_conversation(items[0]))

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        reading = _Reading(log, self)
        yield from read_records(log, values(log), reading.take)
        yield from reading.damages
        yield from reading.sessions()


class _Conversation:
    """One conversation with its id and tools."""

    def __init__(self, facts: Mapping[str, Any], series: CallSeries) -> None:
        self.series = series
        self.id = next((str(facts[key]) for key in _ID_KEYS if facts.get(key)), "")
        request = logged_request(facts)
        self.system, self.tools = request.get("system"), request.get("tools")


class _Reading:
    def __init__(self, log: LogFile, importer: OpenAIChatImporter) -> None:
        self._log = log
        self._importer = importer
        self._series = importer.series()
        self._conversations: list[_Conversation] = []
        self._loose: list[Mapping[str, Any]] = []
        self.damages: list[Damage] = []

    def take(self, record: Record) -> None:
        """Read one value of the log, of any kind."""
        value = record.value
        if is_chat_message(value):
            self._loose.append(self._series.checked(value))
        elif isinstance(value, list) and value and is_chat_message(value[0]):
            self._add({}, LoggedCall(messages=self._checked(value, record)))
        elif isinstance(value, list):
            calls = take_messages(self._log, value, lambda _, item: self._take_call(item, record))
            self.damages.extend(list(calls))
        else:
            self._take_call(value, record)

    def _take_call(self, value: Mapping[str, Any], record: Record) -> None:
        call = logged_call(value)
        self._add(value, replace(call, messages=self._checked(call.messages, record)))

    def _checked(self, messages: Sequence[Any], record: Record) -> list[Mapping[str, Any]]:
        """Return the messages for a request, and note those that cannot be read."""
        found: list[Mapping[str, Any]] = []
        damages = take_messages(
            self._log, messages, lambda _, message: found.append(self._series.checked(message))
        )
        self.damages += (replace(damage, line=record.line) for damage in damages)
        return found

    def sessions(self) -> Iterator[ImportedSession]:
        """Yield the conversations, numbered from the second on: a log that grows keeps its names."""
        if self._loose:
            self._add({}, LoggedCall(messages=self._loose))
        for number, conversation in enumerate(self._conversations, start=1):
            name = f"{self._log.stem}-{number}" if number > 1 else self._log.stem
            yield self._session(conversation, conversation.id or name)

    def _session(self, conversation: _Conversation, external_id: str) -> ImportedSession:
        series = conversation.series
        return ImportedSession(
            external_id=external_id,
            format=self._importer.format,
            agent="",
            turns=series.turns(),
            model=series.model,
            title=title_of(series.first_words),
            started_at=series.started_at,
            system=conversation.system,
            tools=conversation.tools,
        )

    def _add(self, facts: Mapping[str, Any], call: LoggedCall) -> None:
        latest = self._conversations[-1] if self._conversations else None
        if latest is None or not latest.series.extends(call.messages):
            latest = _Conversation(facts, self._importer.series())
            self._conversations.append(latest)
        latest.series.add(call)


def _is_conversation(value: Any) -> bool:
    messages = logged_request(value).get("messages")
    return isinstance(messages, list) and bool(messages) and all(is_chat_message(m) for m in messages)
